"""`--adopt`: the design that phase 4 found becomes the design, and phases 2 and 3 run on it.

The gate that proved it, and what it judged, move to `optimized/adopted/`: they speak of the design before.
"""

from typing import Final

from rich.console import Console

from checklists.report import load_report
from manifest.errors import Problem, RefusedError
from manifest.io import manifest_from_json
from phases import runner
from phases.bringup.options import Arguments as BringupArguments
from phases.bringup.options import resolve as resolve_bringup
from phases.bringup.run import run as run_bringup
from phases.exit_codes import OK
from phases.optimize.names import DESIGN, GATE, KEPT
from phases.port import Port, open_port, write_phase
from phases.presim.options import ADOPTED, ADOPTED_OWNER
from phases.presim.options import Arguments as PresimArguments
from phases.presim.options import resolve as resolve_presim
from phases.presim.planning import given
from phases.presim.run import run as run_presim
from phases.presim.source import MANIFEST
from presim.design_io import design_from_json

PHASE: Final = "optimize"
FOLDER: Final = "optimized/adopted/"


def adopt(port: Port, console: Console, *, in_ci: bool = True) -> int:
    """Make the optimized design the design; the caller holds the port.

    Args:
        port: open, its gates PASS through optimize.
        console: where results go.
        in_ci: append gates to `$GITHUB_STEP_SUMMARY` where CI sets it.

    Returns:
        exit code of the first phase that is not PASS, else 0.

    Raises:
        RefusedError: phase 4 found nothing better.
        UpstreamError: a gate is not PASS, missing, stale or tampered.
    """
    runner.require_passed(port.root, PHASE)
    if DESIGN not in port.state.files:
        what = "phase 4 found nothing better, so there is nothing to adopt"
        raise RefusedError((Problem(code="OPTIMIZE-ADOPT", where=str(port.root), what=what),))
    designs = design_from_json(port.read(DESIGN))
    kept = {FOLDER + name.rpartition("/")[2]: port.read(name) for name in (GATE, *KEPT) if name in port.state.files}
    write_phase(port.root, ADOPTED_OWNER, {**kept, ADOPTED: port.read(DESIGN)}, {})
    manifest = manifest_from_json(port.read(MANIFEST))
    options = resolve_presim(PresimArguments(port=port.root), open_port(port.root), manifest, adopt=True)
    clearance = runner.clear(port.root, "baseline")
    code = run_presim(options, open_port(port.root), clearance, console, planner=given(designs), in_ci=in_ci)
    if code != OK:
        return code
    level = load_report(port.read("gates/bringup.json")).level
    asked = resolve_bringup(BringupArguments(port=port.root, level=level), open_port(port.root))
    code = run_bringup(asked, open_port(port.root), runner.clear(port.root, "presim"), console, in_ci=in_ci)
    write_phase(port.root, PHASE, {}, {})  # last: until here a run that dies leaves the design that was found
    return code
