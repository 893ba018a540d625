"""An image as one file that containerd, podman, skopeo and Docker load: an OCI layout, and Docker's manifest in it."""

import gzip
import hashlib
import io
import json
import tarfile

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

    def archive(self, created):
        """(bytes, digest of the manifest). `created`: RFC 3339."""
        blobs = {}

        def keep(media, data, **more):
            digest = hashlib.sha256(data).hexdigest()
            blobs[f"blobs/sha256/{digest}"] = data
            return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data), **more}
        # Not the newest gzip: the header without a time and without a name.
        layers = [keep(MEDIA + "layer.v1.tar+gzip", gzip.compress(tar, 6, mtime=0)) for _, tar in self._layers]
        config = keep(MEDIA + "config.v1+json", _json({
            "created": created, "architecture": self.architecture, "os": "linux", "config": self._config,
            "rootfs": {"type": "layers",
                       "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}" for _, tar in self._layers]},
            "history": [{"created": created, "created_by": what} for what, _ in self._layers]}))
        manifest = keep(MEDIA + "manifest.v1+json", _json({
            "schemaVersion": 2, "mediaType": MEDIA + "manifest.v1+json", "config": config, "layers": layers}))
        tag = self.name.rpartition(":")[2]
        known_as = self.name if "/" in self.name else f"docker.io/library/{self.name}"
        files = blobs | {
            "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
            "index.json": _json({"schemaVersion": 2, "mediaType": MEDIA + "index.v1+json", "manifests": [
                manifest | {"platform": {"architecture": self.architecture, "os": "linux"},
                            "annotations": {"io.containerd.image.name": known_as,
                                            "org.opencontainers.image.ref.name": tag}}]}),
            "manifest.json": _json([{"Config": _blob(config), "RepoTags": [self.name],
                                     "Layers": [_blob(layer) for layer in layers]}])}
        return _tar(files, self.seconds), manifest["digest"]


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
