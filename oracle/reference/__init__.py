"""The oracle held against onnxruntime: comparisons (a) to (d) on real feeds, and every op alone on made-up inputs."""

from oracle.reference.compare import compare_model, cpu_evidence
from oracle.reference.levels import level_disagreement
from oracle.reference.random_ops import compare_random
from oracle.reference.session import OnnxruntimeError, Session, Settings, run_onnxruntime

__all__ = [
    "OnnxruntimeError",
    "Session",
    "Settings",
    "compare_model",
    "compare_random",
    "cpu_evidence",
    "level_disagreement",
    "run_onnxruntime",
]
