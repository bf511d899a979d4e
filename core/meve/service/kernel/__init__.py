"""The graph kernel: the process that knows which turn replies to which, cuts slices, and signs them.

Applications use `KernelAuthority`, which holds public keys only. `GraphKernel` and its keys belong in the kernel's
process.
"""

from meve.service.kernel.authority import KernelAuthority
from meve.service.kernel.kernel import GraphKernel, SignedSlice
from meve.service.kernel.limits import KernelLimits
from meve.service.kernel.records import TurnEntry, content_hash
from meve.signing_keys import SigningKey, SigningKeys, VerifyingKey, read_verifying_keys

__all__ = [
    "GraphKernel", "KernelAuthority", "KernelLimits", "SignedSlice", "SigningKey", "SigningKeys", "TurnEntry",
    "VerifyingKey", "content_hash", "read_verifying_keys",
]  # fmt: skip
