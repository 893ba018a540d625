"""An image as one file that containerd, podman, skopeo and Docker load: an OCI layout, and Docker's manifest in it."""

import gzip
import hashlib
import io
import json
import tarfile
import time

MEDIA = "application/vnd.oci.image."


class Image:
    """`name`: repository:tag. Loaded without a registry it is docker.io/library/NAME, which is what NAME means."""

    def __init__(self, name, architecture, seconds, user, path, labels, entrypoint=None):
        self.name, self.architecture, self.seconds = name, architecture, seconds
        self._config = {"User": user, "Env": [f"PATH={path}"], "WorkingDir": "/", "Labels": labels}
        if entrypoint:
            self._config["Entrypoint"] = entrypoint
        self._layers = []  # (what it is, tar)

    def add_layer(self, what, tar):
        self._layers.append((what, tar))

    @property
    def created(self):
        """RFC 3339."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.seconds))

    def put(self, blobs):
        """Its blobs into `blobs`; (descriptors of its manifest with the platform, of its config, of its layers)."""
        # Not the newest gzip: the header without a time and without a name.
        layers = [_keep(blobs, "layer.v1.tar+gzip", gzip.compress(tar, 6, mtime=0)) for _, tar in self._layers]
        config = _keep(blobs, "config.v1+json", _json({
            "created": self.created, "architecture": self.architecture, "os": "linux", "config": self._config,
            "rootfs": {"type": "layers",
                       "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}" for _, tar in self._layers]},
            "history": [{"created": self.created, "created_by": what} for what, _ in self._layers]}))
        manifest = _keep(blobs, "manifest.v1+json", _json({
            "schemaVersion": 2, "mediaType": MEDIA + "manifest.v1+json", "config": config, "layers": layers}))
        return manifest | {"platform": {"architecture": self.architecture, "os": "linux"}}, config, layers


def archive_of(images):
    """(bytes, digest) of the file of one image, or of one name's images for several architectures. The digest is that of
    the manifest, or of the index of them, by which a registry gives each node its own."""
    blobs = {}
    put = [image.put(blobs) for image in images]
    head, config, layers = put[0]
    files = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"})}
    name = images[0].name
    if len(images) > 1:
        # An index within the file's own: programs copy what one name stands for, and here that is the index.
        head = _keep(blobs, "index.v1+json", _json({
            "schemaVersion": 2, "mediaType": MEDIA + "index.v1+json", "manifests": [manifest for manifest, _, _ in put]}))
    else:
        # Docker's own list has no architectures, so only a file of one has it.
        files["manifest.json"] = _json([{"Config": _blob(config), "RepoTags": [name],
                                         "Layers": [_blob(layer) for layer in layers]}])
    known_as = name if "/" in name else f"docker.io/library/{name}"
    files["index.json"] = _json({"schemaVersion": 2, "mediaType": MEDIA + "index.v1+json", "manifests": [
        head | {"annotations": {"io.containerd.image.name": known_as,
                                "org.opencontainers.image.ref.name": name.rpartition(":")[2]}}]})
    return _tar(blobs | files, images[0].seconds), head["digest"]


def _keep(blobs, media, data):
    """The descriptor of `data`, which is a blob from now on."""
    digest = hashlib.sha256(data).hexdigest()
    blobs[f"blobs/sha256/{digest}"] = data
    return {"mediaType": MEDIA + media, "digest": f"sha256:{digest}", "size": len(data)}


def _json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _blob(descriptor):
    return "blobs/sha256/" + descriptor["digest"].removeprefix("sha256:")


def _tar(files, seconds):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(files):
            info = tarfile.TarInfo(path)
            info.size, info.mtime, info.mode = len(files[path]), seconds, 0o644
            archive.addfile(info, io.BytesIO(files[path]))
    return out.getvalue()
