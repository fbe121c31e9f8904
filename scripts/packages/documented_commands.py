"""Prints the commands of a section of a page, so that the tests run what readers copy.

    python3 scripts/packages/documented_commands.py PAGE SECTION [NUMBER] [--language sh]

NUMBER selects one block of the section, from 1. Without it, all blocks are printed. Blocks of another language are
files, such as parts of a unit.
"""

import argparse
import pathlib
import re
import sys


def find_blocks(page, section, language):
    """The blocks of a language below a heading. The page's title is a heading, too."""
    # Comments in blocks look like headings, so the blocks are split off first.
    parts = re.split(r"^(```.*?^```)$", pathlib.Path(page).read_text(), flags=re.MULTILINE | re.DOTALL)
    heading, found, start = None, [], f"```{language}\n"
    for text, block in zip(parts[::2], [*parts[1::2], ""], strict=True):
        heading = (re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE) or [heading])[-1]
        if heading == section and block.startswith(start):
            found.append(block.removeprefix(start).removesuffix("```"))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page")
    parser.add_argument("section")
    parser.add_argument("number", nargs="?", type=int)
    parser.add_argument("--language", default="sh")
    args = parser.parse_args()
    blocks = find_blocks(args.page, args.section, args.language)
    if args.number:
        blocks = blocks[args.number - 1 : args.number]
    if not blocks:
        sys.exit(f"{args.page}: the section {args.section!r} has no such block")
    sys.stdout.write("".join(blocks))


main()
