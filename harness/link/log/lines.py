# ruff: noqa: RUF001
"""A build log as plain lines: without colours, carriage returns and what wrappers put in front; and
GNU ld's main messages of other languages in English."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.errors.plain import without_controls

_PREFIXES = re.compile(
    r"""^(?:
      \s*\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\s   # CI time stamps
    | \s*\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?\s                                  # 12:34:56
    | \#\d+\s+\d+\.\d+\s                                                     # docker buildkit
    | \s*\|\s                                                                # bitbake, kas
    | \[build\]\s                                                            # VS Code
    | (?:INFO|DEBUG|ERROR|WARNING)\s+-\s                                     # twister
    | >\s(?=\S)                                                              # quoted in an issue
    )+""",
    re.VERBOSE,
)


# Parallel jobs that write without an end of line: behind the message, another one begins.
_GLUED = re.compile(
    r"(?P<message>undefined reference to [`'][^`]+?')"
    r"(?P<next>(?:make(?:\[\d+\])?|ninja|\S*?\bld(?:\.\w+)?): |\[\d+/\d+\]|collect2: )"
)


@dataclass(frozen=True)
class Line:
    number: int  # in the log, from 1
    text: str


def lines_of(text: str) -> list[Line]:
    """Every line that has text, in order, cleaned.

    A carriage return inside a line starts it again, as on a terminal: what stood before it is
    kept as a line of its own, since progress bars and compilers share the terminal.
    """
    found = []
    for number, raw in enumerate(text.split("\n"), 1):
        for part in raw.split("\r"):
            apart = _GLUED.sub(r"\g<message>\r\g<next>", without_controls(part))
            for piece in apart.split("\r"):
                clean = _PREFIXES.sub("", piece).rstrip()
                if clean:
                    found.append(Line(number, clean))
    return found


def decode(raw: bytes) -> str:
    """Text of a log of unknown origin: UTF-16 from PowerShell, else UTF-8 with damage kept."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16", "replace")
    return raw.decode("utf-8-sig", "replace")


# GNU ld's main messages in other languages. The wordings are those of the message catalogues that
# binutils 2.40 installs (/usr/share/locale/*/LC_MESSAGES/ld.mo). Its catalogues for German, Polish
# and Korean leave them in English; theirs are the wordings of older ones, as people quote them.
_O, _C = "[`'‘“\"«»„]\\s?", "\\s?['’”\"»«“]"
_NAME = f"{_O}(.+?){_C}"
_BARE = "[`'‘“\"«„]?\\s?([^\\s'’”»“]+)\\s?['’”\"»“]?"

_UNDEFINED = r"undefined reference to `\1'"
_MULTIPLE = r"multiple definition of `\1'"
_FUNCTION = r": in function `\1':"
_FIRST = "first defined here"
_NO_FIT = r"section `\1' will not fit in region `\2'"
_OVERFLOWED = r"region `\1' overflowed by \2 bytes"

_WORDINGS = (
    # undefined reference
    (f"référence indéfinie vers {_NAME}", _UNDEFINED),
    (f"referencia a {_NAME} sin definir", _UNDEFINED),
    (f"riferimento non definito a {_NAME}", _UNDEFINED),
    (f"referência não definida para {_NAME}", _UNDEFINED),
    (f"неопредел[её]нная ссылка на {_NAME}", _UNDEFINED),
    (f"невизначене посилання (?:на )?{_NAME}", _UNDEFINED),
    (f"udefineret reference til {_NAME}", _UNDEFINED),
    (f"odefinierad referens till {_NAME}", _UNDEFINED),
    (f"对\\s?{_NAME}\\s?未定义的引用", _UNDEFINED),
    (f"{_NAME}\\s?に対する定義されていない参照です", _UNDEFINED),
    (f"(?:nicht definierter|undefinierter) Verweis auf {_NAME}", _UNDEFINED),
    (f"niezdefiniowane odwołanie do {_NAME}", _UNDEFINED),
    (f"{_NAME}\\s?에 대한 정의되지 않은 참조(?:입니다)?", _UNDEFINED),
    # multiple definition
    (f"Mehrfachdefinition(?:en)? von {_NAME}", _MULTIPLE),
    (f"wielokrotna definicja {_NAME}", _MULTIPLE),
    (f"définitions multiples de {_NAME}", _MULTIPLE),
    (f"definiciones múltiples de {_NAME}", _MULTIPLE),
    (f"definizione multipla di {_NAME}", _MULTIPLE),
    (f"múltiplas definições de {_NAME}", _MULTIPLE),
    (f"повторное определение {_NAME}", _MULTIPLE),
    (f"повторне визначення {_NAME}", _MULTIPLE),
    (f"(?<=[:：]\\s){_BARE} 的多重定[义義]", _MULTIPLE),
    (f"{_NAME}\\s?が重複して定義されています", _MULTIPLE),
    ("défini pour la première fois ici", _FIRST),
    ("primero se definió aquí", _FIRST),
    ("definito qui per la prima volta", _FIRST),
    ("definido primeiro aqui", _FIRST),
    ("здесь первое определение", _FIRST),
    ("тут визначено вперше", _FIRST),
    ("第一次在此定义", _FIRST),
    ("ここで最初に定義されています", _FIRST),
    # in function
    (f"\\s?: dans la fonction {_NAME}\\s?:", _FUNCTION),
    (f": en la función {_NAME}:", _FUNCTION),
    (f": nella funzione {_NAME}:", _FUNCTION),
    (f": na função {_NAME}:", _FUNCTION),
    (f": в функции {_NAME}:", _FUNCTION),
    (f": у функції {_NAME}:", _FUNCTION),
    (f": i funktionen {_NAME}:", _FUNCTION),
    (f"[:：]\\s?在函数\\s?{_NAME}\\s?中[:：]", _FUNCTION),
    (f": 関数 {_NAME} 内:", _FUNCTION),
    (f": in Funktion {_NAME}:", _FUNCTION),
    (f": w funkcji {_NAME}:", _FUNCTION),
    # overflow
    (f"la section {_NAME} ne va pas s'adapter à la région {_NAME}", _NO_FIT),
    (f"la sección (?:\\S+ ){_NAME} no cabe en la región {_NAME}", _NO_FIT),
    (f"la sezione (?:\\S+ ){_NAME} non si adatterà alla regione {_NAME}", _NO_FIT),
    (f"a seção (?:\\S+ ){_NAME} não vai caber na região {_NAME}", _NO_FIT),
    (f"раздела {_NAME} не попад[её]т в область {_NAME}", _NO_FIT),
    (f"节 {_BARE} 将无法适合区域 {_BARE}", _NO_FIT),
    (f"セクション {_NAME} は領域 {_NAME} 内に入りません", _NO_FIT),
    (f"la région {_NAME} est débordée de (\\d+) octets?", _OVERFLOWED),
    (f"la región {_NAME} se desborda por (\\d+) bytes?", _OVERFLOWED),
    (f"overflow della regione {_NAME} pari a (\\d+) byte", _OVERFLOWED),
    (f"a região {_NAME} estourou por (\\d+) bytes?", _OVERFLOWED),
    (f"область {_NAME} выходит за границы на (\\d+) байта?", _OVERFLOWED),
    (f"区域 {_BARE} 溢出了 (\\d+) 字节", _OVERFLOWED),
    (f"領域 {_NAME} が (\\d+) バイト溢れました", _OVERFLOWED),
)


# What can be said in other languages without a letter outside ASCII.
_ASCII = re.compile(
    "sin definir|riferimento non|udefineret|Verweis auf|Funktion|w funkcji|Mehrfachdefinition"
    "|wielokrotna|definizione multipla|nella funzione|no cabe en|se desborda|overflow della"
)


def english(line: str) -> str:
    """The line with what we know of other languages put into English."""
    if line.isascii() and not _ASCII.search(line):
        return line
    for pattern, said in _WORDINGS:
        line = re.sub(pattern, said, line, flags=re.IGNORECASE)
    return line
