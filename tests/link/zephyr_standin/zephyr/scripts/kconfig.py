"""Kconfig by kconfiglib, as strict as Zephyr's: what is refused or only warned of there is here.

kconfig.py KCONFIG CONFIG HEADER SOURCES FRAGMENT...: merges the fragments; writes CONFIG, HEADER,
and the list of Kconfig files. Its messages are Zephyr's, since they are what we read.
"""

import os
import sys
import textwrap

import kconfiglib
from kconfiglib import TRI_TO_STR, expr_str, expr_value


def main(root, config, header, sources, *fragments):
    print("Parsing " + root)
    kconf = kconfiglib.Kconfig(root, warn_to_stderr=False, suppress_traceback=True)
    kconf.warn_assign_undef = True
    kconf.warn_assign_override = kconf.warn_assign_redun = False
    for number, fragment in enumerate(fragments):
        print(kconf.load_config(fragment, replace=number == 0))
    for symbol in kconf.unique_defined_syms:
        if symbol.user_value is not None:
            check(symbol)
    _ = [symbol.str_value for symbol in kconf.unique_defined_syms]  # evaluates each
    for warning in kconf.warnings:
        print("\n" + warning, file=sys.stderr)
    if kconf.warnings:
        stop("Aborting due to Kconfig warnings")
    print(kconf.write_config(config))
    print(kconf.write_autoconf(header))
    with open(sources, "w") as file:
        file.write("\n".join(os.path.abspath(name) for name in kconf.kconfig_filenames) + "\n")


def check(symbol):
    where = ", ".join(f"{node.filename}:{node.linenr}" for node in symbol.nodes)
    named = f"{symbol.name} (defined at {where})"
    if not any(node.prompt for node in symbol.nodes):
        stop(
            f"{named} is assigned in a configuration file, but is not directly "
            "user-configurable (has no prompt)."
        )
    wanted = symbol.user_value
    asked = TRI_TO_STR[wanted] if symbol.type == kconfiglib.BOOL else wanted
    if asked == symbol.str_value or symbol.choice:
        return
    least = wanted if symbol.type == kconfiglib.BOOL else 2
    terms = kconfiglib.split_expr(symbol.direct_dep, kconfiglib.AND)
    unmet = ", ".join(
        f"{shown(t)} (={TRI_TO_STR[expr_value(t)]})" for t in terms if expr_value(t) < least
    )
    why = f" Check these unsatisfied dependencies: {unmet}." if unmet else ""
    say(
        f"warning: {named} was assigned the value '{asked}' but got the value "
        f"'{symbol.str_value}'.{why}"
    )


def shown(term):
    return f"({expr_str(term)})" if isinstance(term, tuple) else expr_str(term)


def say(text):
    print("\n" + textwrap.fill(text, 100) + "\n", file=sys.stderr)


def stop(text):
    say("error: " + text)
    sys.exit(1)


main(*sys.argv[1:])
