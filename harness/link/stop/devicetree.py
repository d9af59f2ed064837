"""What Zephyr's devicetree scripts say, and the compiler of a node that is not there.

Sources: what scripts/dts/gen_edt.py of Zephyr 4.1.0 prints, and the C preprocessor."""

from __future__ import annotations

from harness.link.stop.model import StopKind, rules

_PARSED = r"devicetree error: (?P<file>[^:]+):(?P<at>\d+) \(column (?P<column>\d+)\): parse error: "
_NODE = r"<Node (?P<node>\S+) in '(?P<where>[^']+)'>"

RULES = (
    *rules(
        StopKind.DEVICETREE,
        ("undefined node label", _PARSED + r"undefined node label '(?P<label>[^']+)'",
         "{file}:{at} refers to the node label {label}, which nothing before it defines.",
         "Correct the label in {file}:{at}, or define it (`{label}: node@... {{ }};`); "
         "zephyr/zephyr.dts of a build for this board has the labels that there are."),
        ("undefined node label", r"devicetree error: (?P<node>\S+): undefined node label "
         r"'(?P<label>[^']+)'",
         "The node {node} refers to the node label {label}, which nothing defines.",
         "Correct the label where {node} is written (an overlay or the board's files), or define "
         "it; zephyr/zephyr.dts of a build for this board has the labels that there are."),
        ("parse error", _PARSED + r"(?P<what>.+)$",
         "The devicetree source {file} is wrong at line {at}, column {column}: {what}.",
         "Correct {file}:{at}; an `expected ';'` is often the end of the line before."),
        ("fatal error", r"^(?P<file>\S+\.(?:overlay|dtsi?)):(?P<at>\d+):\d+: fatal error: "
         r"(?P<what>.+?): No such file",
         "{file}:{at} includes {what}, which is in no folder that devicetree sources come from.",
         "Correct the #include in {file}:{at}, or put {what} beside it or in `dts/` of the "
         "application or of a folder in DTS_ROOT."),
        ("fatal error", r"<command-line>: fatal error: (?P<file>\S+\.(?:overlay|dts)): No such",
         "The overlay {file}, which DTC_OVERLAY_FILE or EXTRA_DTC_OVERLAY_FILE names, does not "
         "exist.", "Correct the name; a relative one is taken from the application's folder."),
        ("does not appear in", r"devicetree error: '(?P<property>[^']+)' is marked as required in "
         rf"'properties:' in (?P<file>\S+), but does not appear in {_NODE}",
         "The node {node} has no property {property}, which its binding {file} requires.",
         "Give the node {node} the property {property}, with the type that {file} says."),
        ("not declared in 'properties:'", r"devicetree error: '(?P<property>[^']+)' appears in "
         r"(?P<node>\S+) in (?P<file>\S+), but is not declared in 'properties:' in "
         r"(?P<binding>\S+)",
         "The node {node} ({file}) has the property {property}, which its binding {binding} does "
         "not know.",
         "Correct the property's name in the node {node}, or declare it in {binding}."),
        ("is not in 'enum'", r"devicetree error: value of property '(?P<property>[^']+)' on "
         r"(?P<node>\S+) in (?P<file>\S+) \((?P<value>.+?)\) is not in 'enum' list in "
         r"(?P<binding>\S+) \((?P<values>.+)\)",
         "The node {node} ({file}) sets {property} to {value}; its binding {binding} allows "
         "{values}.",
         "Give {property} of the node {node} one of these values."),
        ("expected property", r"expected property '(?P<property>[^']+)' on (?P<node>\S+) in "
         r"(?P<where>\S+) to be assigned with '(?P<wanted>.+)', not '(?P<given>.+)'$",
         "The node {node} gives {property} a value of another type: `{given}`.",
         "Write it as `{wanted}`."),
        ("devicetree error: ", rf"devicetree error: (?P<what>.*{_NODE}.*)$",
         "The devicetree is refused: {what}.",
         "Correct the node {node}; it is in the board's files or in an overlay."),
    ),
    *rules(
        StopKind.BINDING,
        ("unknown type", r"devicetree error: '(?P<property>[^']+)' in 'properties:' in "
         r"(?P<file>\S+) has unknown type '(?P<given>[^']+)', expected one of (?P<types>.+)$",
         "The binding {file} gives {property} the type {given}, which is none.",
         "Give {property} in {file} one of these types: {types}."),
        ("' not found", r"devicetree error: '(?P<what>[^']+)' not found",
         "A binding includes {what}, which is in no folder of bindings.",
         "Correct its `include:`, or put {what} into dts/bindings of the application or of a "
         "folder in DTS_ROOT."),
        ("isn't valid YAML", r"(?:WARNING|devicetree error): '(?P<file>[^']+)' appears in binding "
         r"directories but isn't valid YAML: (?P<what>.*?)(?: in \"[^\"]+\", line (?P<at>\d+).*)?$",
         "The binding {file} is no YAML ({what}).",
         "Correct {place}."),
        ("devicetree error: ", r"devicetree error: (?:.*?in )?(?P<file>\S+\.yaml)\b.*$",
         "The binding {file} is refused.", "Correct {file} as the message says."),
    ),
    *rules(
        StopKind.DEVICETREE,
        ("devicetree error: ", r"devicetree error: (?P<what>.+)$",
         "The devicetree is refused: {what}.", ""),
        ("__device_dts_ord_DT_N_NODELABEL_",
         r"__device_dts_ord_DT_N_NODELABEL_(?P<label>\w+?)_ORD\W "
         r"(?:undeclared|was not declared)",
         "{place} takes the device of the node label {label}, which this board's devicetree does "
         "not have.",
         "Correct the label, or add the node in an overlay; zephyr/zephyr.dts in the build "
         "directory has the labels that there are."),
        ("DT_N_ALIAS_", r"\W(?:__device_dts_ord_)?DT_N_ALIAS_(?P<alias>[a-z0-9_]+?)"
         r"(?:_(?:[A-Z]\w*))?\W (?:undeclared|was not declared)",
         "{place} uses the devicetree alias {alias}, which this board's devicetree does not have.",
         "Define it in an overlay: / {{ aliases {{ {alias} = &LABEL; }}; }};"),
        ("DT_N_", r"\W(?:__device_dts_ord_)?DT_N_(?P<what>[A-Z]\w+?)\W "
         r"(?:undeclared|was not declared)",
         "{place} uses something of the devicetree that is not in it: {what}.",
         "Compare with zephyr/zephyr.dts in the build directory: the node, its property and a "
         "binding for its compatible must be there."),
    ),
)  # fmt: skip
