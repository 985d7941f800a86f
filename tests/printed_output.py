"""Compares what a page promises with what is printed, line by line, with runs of blanks counting as one.

- a line of `...` stands for any number of lines, `...` within a line for any text;
- numbers that vary match any number: those with a decimal point, and those before a unit of time,
  speed or memory (12 s, 3400 tokens/s, 512 MiB); bars and dashes of tables match any length;
- everything else, whole numbers too, must be equal.
"""

import re

import pytest

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
UNIT = r"(?:ms|s|min|h|[KMGT]i?B|B|tok(?:ens)?/s|steps/s|MB/s|GB/s|x)\b|%"
VARYING = re.compile(rf"{NUMBER}(?=\s?(?:{UNIT}))|[-+]?\d[\d,]*\.\d+(?:e[-+]?\d+)?")


def line_pattern(line):
    pattern = ""
    for part in re.split(r"(\.\.\.)", " ".join(line.split())):
        if part == "...":
            pattern += ".*"
            continue
        position = 0
        for number in VARYING.finditer(part):
            pattern += re.escape(part[position : number.start()]) + NUMBER
            position = number.end()
        pattern += re.escape(part[position:])
    pattern = re.sub(r"(?:\\-|─|━|=){3,}", r"[-─━=]+", pattern)
    return pattern


def output_pattern(expected):
    pattern = ""
    for line in expected.rstrip().splitlines():
        pattern += r"(?:.*\n)*?" if line.strip() == "..." else line_pattern(line) + r"\n"
    return re.compile(pattern)


def assert_prints(expected, actual):
    plain = "".join(" ".join(line.split()) + "\n" for line in actual.rstrip().splitlines())
    if not output_pattern(expected).fullmatch(plain):
        pytest.fail(f"The page promises\n\n{expected}\nbut the output is\n\n{actual}", pytrace=False)
