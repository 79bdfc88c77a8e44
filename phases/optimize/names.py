"""Files of phase 4 in a port."""

from typing import Final

GATE: Final = "gates/optimize.json"
DESIGN: Final = "optimized/design.json"
RECORD: Final = "optimized/record.json"
ABLATION: Final = "optimized/ablation.json"
FRONT: Final = "reports/front.svg"
KEPT: Final = (RECORD, ABLATION)
"""What moves to `optimized/adopted/` beside the gate."""
