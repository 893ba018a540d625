"""What is in an image, as SPDX 2.3 in JSON: Debian's packages by version and checksum, and our own programs."""

import hashlib
import re
from urllib.parse import quote


def spdx(name, version, created, digest, distribution, packages, programs, licence):
    """`distribution`: such as "debian-12". `programs`: {path in the image: bytes}."""
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
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"{name}-{version}",
        # The same image has the same document.
        "documentNamespace": f"https://heddle.dev/sbom/{name}/{digest.removeprefix('sha256:')}",
        "creationInfo": {"created": created, "creators": ["Tool: heddle-tools-images"]},
        "packages": elements, "files": files,
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                           "relatedSpdxElement": described}] +
                         [{"spdxElementId": described, "relationshipType": "CONTAINS", "relatedSpdxElement": element}
                          for element in contained]}


def _package(package, distribution):
    vendor = distribution.partition("-")[0]
    version, architecture = package.field("Version"), package.field("Architecture")
    locator = (f"pkg:deb/{vendor}/{package.name.replace('+', '%2B')}@{quote(version, safe='.~-')}"
               f"?arch={architecture}&distro={distribution}")
    return {"SPDXID": "SPDXRef-Package-" + _identifier(package.name), "name": package.name, "versionInfo": version,
            "supplier": f"Organization: {vendor.capitalize()}", "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
            "sourceInfo": f"built from the source package {package.field('Source') or package.name}",
            "checksums": [{"algorithm": "SHA256", "checksumValue": package.sha256}],
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": locator}]}


def _identifier(text):
    return re.sub(r"[^A-Za-z0-9.-]", lambda match: f"-{ord(match[0]):x}-", text)
