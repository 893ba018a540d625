"""The files of an image, by path, and the one tar that a set of them makes: the same bytes for the same files."""

import io
import stat
import tarfile

# Debian's packages still say /lib, and the loader's own path does too; it is /usr/lib (merged /usr).
MERGED = ("bin", "sbin", "lib", "lib64")


class Tree:
    """Paths are relative and normal: "usr/bin/x". All files belong to root unless `owner` says otherwise."""

    def __init__(self):
        self.entries = {}  # path: (tarfile.TarInfo, bytes or None)

    def __contains__(self, path):
        return path in self.entries

    def add(self, path, kind, mode, data=None, target="", owner=0):
        info = tarfile.TarInfo(path)
        info.type, info.mode, info.linkname = kind, stat.S_IMODE(mode), target
        info.uid = info.gid = owner
        info.size = len(data) if data is not None else 0
        self.entries[path] = (info, data)

    def add_file(self, path, data, mode=0o644):
        self.add(path, tarfile.REGTYPE, mode, data)

    def add_folder(self, path, mode=0o755, owner=0):
        self.add(path, tarfile.DIRTYPE, mode, owner=owner)

    def add_link(self, path, target):
        self.add(path, tarfile.SYMTYPE, 0o777, target=target)

    def update(self, other):
        self.entries.update(other.entries)

    def data(self, path):
        """A file's bytes, through symbolic links; None where there is no such file."""
        for _ in range(16):
            info, data = self.entries.get(path, (None, None))
            if info is None or not (info.issym() or info.islnk()):
                return data
            path = normal(info.linkname) if info.islnk() else joined(path, info.linkname)
        return None

    def unpacked_bytes(self):
        return sum(info.size for info, _ in self.entries.values())

    def tar(self, seconds):
        """`seconds`: the time that every file gets. Folders that nobody named are made."""
        whole = dict(self.entries)
        for path in self.entries:
            while path := path.rpartition("/")[0]:
                if path not in whole:
                    info = tarfile.TarInfo(path)
                    info.type, info.mode = tarfile.DIRTYPE, 0o755
                    whole[path] = (info, None)
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path in sorted(whole):
                info, data = whole[path]
                info.mtime = seconds
                archive.addfile(info, io.BytesIO(data) if data is not None else None)
        return out.getvalue()


def normal(path):
    """As on a machine with merged /usr."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if parts and parts[0] in MERGED:
        parts.insert(0, "usr")
    return "/".join(parts)


def joined(path, target):
    """Where a symbolic link at `path` leads."""
    if target.startswith("/"):
        return normal(target)
    parts = path.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return normal("/".join(parts))
