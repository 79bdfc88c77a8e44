"""Files of a port: canonical JSON, the manifest as JSON, and `.npz` archives without pickle.

Why own archive code: numpy's reader hands members to pickle on request, trusts the sizes that a file claims,
and confuses names such as `file`, `allow_pickle` or `a` beside `a.npy`; its bytes change with the clock.
"""

from manifest.io.canonical import canonical_json, is_canonical, parse_canonical, schema_errors, sha256_hex
from manifest.io.document import (
    load_manifest,
    manifest_errors,
    manifest_from_json,
    manifest_to_json,
    save_manifest,
)
from manifest.io.npz import (
    DEFAULT_MAX_BYTES,
    arrays_to_bytes,
    load_arrays,
    read_npz,
    save_arrays,
    write_npz,
)

__all__ = [
    "DEFAULT_MAX_BYTES",
    "arrays_to_bytes",
    "canonical_json",
    "is_canonical",
    "load_arrays",
    "load_manifest",
    "manifest_errors",
    "manifest_from_json",
    "manifest_to_json",
    "parse_canonical",
    "read_npz",
    "save_arrays",
    "save_manifest",
    "schema_errors",
    "sha256_hex",
    "write_npz",
]
