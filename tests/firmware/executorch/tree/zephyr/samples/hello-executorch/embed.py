"""Print a model as a header, or, with lists of operators, which of them the model calls.

embed.py FILE.pte [YAML…]
"""

import re
import sys

with open(sys.argv[1], "rb") as file:
    model = file.read()
if sys.argv[2:]:
    known = []
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            for kind, name in re.findall(r"^- (op|func): ([\w:.]+)", file.read(), re.MULTILINE):
                known.append(name if kind == "func" else f"aten::{name}")
    # a program has an operator's name and its overload as strings of their own
    called = (name for name in known if name.partition(".")[0].encode() + b"\0" in model)
    print(",".join(called), end="")
else:
    print("alignas(16) static const unsigned char model_pte[] = {")
    print(",".join(map(str, model)) + "};")
