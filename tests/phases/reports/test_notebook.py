import ast
import json

import nbformat

from phases.reports.notebook import CELLS, render_notebook


def test_is_a_valid_notebook_without_outputs() -> None:
    notebook = nbformat.reads(render_notebook().decode("utf-8"), as_version=4)
    nbformat.validate(notebook)
    assert [c.cell_type for c in notebook.cells] == [kind for kind, _ in CELLS]
    assert all(not c.outputs and c.execution_count is None for c in notebook.cells if c.cell_type == "code")


def test_same_bytes_every_time_with_stable_cell_ids() -> None:
    data = render_notebook()
    assert data == render_notebook()
    assert [c["id"] for c in json.loads(data)["cells"]] == [f"baseline-{n:02}" for n in range(1, len(CELLS) + 1)]


def test_cells_are_python() -> None:
    for kind, source in CELLS:
        if kind == "code":
            ast.parse(source)
