"""A process of a job as far as it comes without a GPU: NCCL reads its configuration and makes a unique id. Writes, as
JSON, what NCCL_* variables it has afterwards, NCCL's version and what its call returned: child.py LIBNCCL ANSWER"""

import ctypes
import json
import sys


def main():
    nccl = ctypes.CDLL(sys.argv[1])
    version, unique = ctypes.c_int(), ctypes.create_string_buffer(128)
    nccl.ncclGetVersion(ctypes.byref(version))
    result = nccl.ncclGetUniqueId(unique)
    # Python's own copy is of the start; NCCL has set those of the C library.
    table = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    variables, index = {}, 0
    while table[index] is not None:
        name, _, value = table[index].decode().partition("=")
        index += 1
        if name.startswith(("NCCL", "#")) or not name:
            variables[name] = value
    with open(sys.argv[2], "w") as answer:  # NCCL writes to standard output
        json.dump({"version": version.value, "result": result, "variables": variables}, answer)


if __name__ == "__main__":
    main()
