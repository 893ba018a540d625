"""What is in an image, as SPDX 2.3 in JSON: Debian's packages by version and checksum, our own programs, and the packages
whose headers are compiled into these."""

import hashlib
import re
from urllib.parse import quote


NOT_KNOWN = ("What is compiled into the programs is not in here: they came from a folder that is no build tree, and its build "
             "has the record of it.")


def spdx(name, version, created, digest, distribution, packages, programs, licence, compiled):
    """`distribution`: such as "debian-12". `programs`: {path in the image: bytes}. `compiled`: as compiled.packages() has
    it, None where nobody can tell."""
    described = "SPDXRef-Image"
    elements = [{
        "SPDXID": described, "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
        "copyrightText": "NOASSERTION", "primaryPackagePurpose": "CONTAINER",
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest.removeprefix("sha256:")}]}]
    elements += [_package(package, distribution) for package in packages]
    files = [{"SPDXID": "SPDXRef-File-" + _identifier(path), "fileName": f"/{path}",
              "checksums": [{"algorithm": algorithm.upper(), "checksumValue": hashlib.new(algorithm, data).hexdigest()}
                            for algorithm in ("sha1", "sha256")],
              "licenseConcluded": licence, "copyrightText": "NOASSERTION"} for path, data in sorted(programs.items())]
    contained = [element["SPDXID"] for element in elements[1:] + files]
    inside = [_compiled(package, facts, distribution) for package, facts in sorted((compiled or {}).items())]
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"{name}-{version}",
        # The same image has the same document.
        "documentNamespace": f"https://heddle.dev/sbom/{name}/{digest.removeprefix('sha256:')}",
        "creationInfo": {"created": created, "creators": ["Tool: heddle-tools-images"]} |
                        ({"comment": NOT_KNOWN} if compiled is None else {}),
        "packages": elements + inside, "files": files,
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                           "relatedSpdxElement": described}] +
                         [{"spdxElementId": described, "relationshipType": "CONTAINS", "relatedSpdxElement": element}
                          for element in contained] +
                         [{"spdxElementId": described, "relationshipType": "STATIC_LINK",
                           "relatedSpdxElement": element["SPDXID"]} for element in inside]}


def _package(package, distribution):
    return _of_distribution("Package", package.name, package.field("Version"), package.field("Architecture"),
                            package.field("Source"), distribution) | {
        "checksums": [{"algorithm": "SHA256", "checksumValue": package.sha256}]}


def _compiled(name, described, distribution):
    return _of_distribution("Compiled", name, *described, distribution) | {
        "comment": "No file of it is in the image: its headers are compiled into the programs."}


def _of_distribution(kind, name, version, architecture, source, distribution):
    vendor = distribution.partition("-")[0]
    locator = (f"pkg:deb/{vendor}/{name.replace('+', '%2B')}@{quote(version, safe='.~-')}"
               f"?arch={architecture}&distro={distribution}")
    return {"SPDXID": f"SPDXRef-{kind}-" + _identifier(name), "name": name, "versionInfo": version,
            "supplier": f"Organization: {vendor.capitalize()}", "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
            "sourceInfo": f"built from the source package {source or name}",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": locator}]}


def _identifier(text):
    return re.sub(r"[^A-Za-z0-9.-]", lambda match: f"-{ord(match[0]):x}-", text)
