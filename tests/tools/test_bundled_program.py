"""The .bpte carries the same bytes that the Program's files have, in method layout."""

from __future__ import annotations

from harness.config.models import find_model
from harness.export.batch import export
from harness.export.process import ExportProcess
from harness.export.request import ExportRequest
from tests.late import Late

bundled_program = Late("tools.bundled_program")
serialize = Late("executorch.devtools.bundled_program.serialize")


def test_a_bundle_holds_program_inputs_and_expected_outputs(
    hil_export_process: ExportProcess,
) -> None:
    request = ExportRequest(find_model("resnet8"))
    program = export([request], process=hil_export_process)[0].unwrap()
    content = bundled_program.bundled(program)
    assert content[4:8] == b"BP08"
    tables = serialize.deserialize_from_flatbuffer_to_bundled_program(content)
    assert bytes(tables.program) == program.pte_path.read_bytes()
    (suite,) = tables.method_test_suites
    assert suite.method_name == "forward"
    assert len(suite.test_cases) == len(program.sets)
    for case, files in zip(suite.test_cases, program.sets, strict=True):
        image, output = case.inputs[0].val, case.expected_outputs[0].val
        assert tuple(image.dim_order) == (0, 2, 3, 1)
        assert bytes(image.data) == (program.directory / files.inputs[0]).read_bytes()
        assert bytes(output.data) == (program.directory / files.expected[0]).read_bytes()
