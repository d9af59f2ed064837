"""Write the table of the kernels that a runner registers: those of a list, from lists of them;
without a list, all.

gen.py OUT OPERATOR,OPERATOR… YAML…
"""

import re
import sys

ENTRY = re.compile(r"^- (op|func): ([\w:.]+).*?^ +kernel_name: (\S+)$", re.MULTILINE | re.DOTALL)

out, wanted, *lists = sys.argv[1:]
known = {}
for path in lists:
    with open(path, encoding="utf-8") as file:
        for kind, name, kernel in ENTRY.findall(file.read()):
            known[name if kind == "func" else f"aten::{name}"] = kernel
chosen = {name: known[name] for name in wanted.split(",") if name in known} or known
with open(out, "w", encoding="utf-8") as file:
    file.write('#include "core/kernel.h"\n\nnamespace hil {\n\n')
    for kernel in sorted(set(chosen.values())):
        file.write(f"Error {kernel}(KernelContext& ctx, Args args);\n")
    file.write("\nnamespace {\n\nconstexpr KernelEntry kKernels[] = {\n")
    for name, kernel in chosen.items():
        file.write(f'    {{"{name}", {kernel}}},\n')
    file.write("};\n\n}  // namespace\n\n")
    file.write("Span<const KernelEntry> kernel_table() { return {kKernels, ")
    file.write("sizeof(kKernels) / sizeof(kKernels[0])}; }\n\n}  // namespace hil\n")
