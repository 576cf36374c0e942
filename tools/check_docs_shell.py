#!/usr/bin/env python3
"""Runs the shell blocks of README.md and docs/ and compares what they print with what the page shows.

Each page has one temporary folder of its own, in which its blocks run in order, with the built
`samebits` first on PATH. Pages run side by side.

  ```console   Lines that begin with "$ " are commands (a backslash at the end goes on in the next
               line); what follows, up to the next command, is the output shown: standard output and
               standard error together.
  ```sh        Runs as a whole under `bash -e` and has to end with 0; its output is not looked at.

Shown and true output are equal line by line, but for what may vary:
  - a line that holds only … stands for any number of lines, … inside a line for any text in it;
  - figures in front of the units s, ms and tokens/s are not compared, nor blanks at line ends.
A command that shows no output may print anything and has to end with 0. One that shows some may
end with another exit code of samebits; where it shows a verdict (EQUAL, DRIFT, REFUSED, …) the exit
code has to be that of the verdict. Crashes never pass.

Comments of the page that this check reads:
  <!-- not run: REASON -->   above a block: it is left alone, and counted and listed here
  <!-- file: NAME -->        above a block of another language: it becomes the file NAME
  <!-- before: COMMAND -->   on a line of its own: runs here, unseen by readers; has to end with 0
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import report

SHELL = ("console", "sh")
COMMENT = re.compile(r"<!-- (not run|file|before): (.+?) -->$")
TIMES = re.compile(r"\d[\d,]*(?:\.\d+)?(?= (?:s|ms|tokens/s)\b)")
# As gate/report_text.cc and base/result.cc print them.
VERDICTS = {"EQUAL": 0, "DRIFT": 1, "NOT COMPARABLE": 2, "WEIGHTS DIFFER": 3,
            "SEMANTICS DIFFER": 4, "REFUSED": 5, "BROKEN DATA": 6}
NO_EXIT_CODE = 70  # a bug of samebits; 126 and above: the shell's
SECONDS = 60       # a command


class Block:
    """A fenced block or a `before` comment: where it stands, what it is, what it holds."""

    def __init__(self, line, language, marker=None):
        self.line, self.language, self.marker, self.lines = line, language, marker, []


def read_blocks(text):
    """(blocks in order, problems as (line number, text))."""
    blocks, problems, marker, block = [], [], None, None
    for number, line in enumerate(text.splitlines(), 1):
        if block is not None:
            if line.strip() == "```":
                block = None
            else:
                block.lines.append(line)
            continue
        if line.startswith("```"):
            block = Block(number, line[3:].strip(), marker)
            blocks.append(block)
            marker = None
            continue
        if marker and line.strip():
            problems.append((number, f"<!-- {marker[0]}: … --> stands above no block"))
            marker = None
        if match := COMMENT.match(line.strip()):
            if match[1] == "before":
                blocks.append(Block(number, "before"))
                blocks[-1].lines = [match[2]]
            else:
                marker = (match[1], match[2])
    if block is not None:
        problems.append((block.line, "the block has no end"))
    if marker:
        problems.append((number, f"<!-- {marker[0]}: … --> stands above no block"))
    return blocks, problems


def commands(block):
    """(line number, command, lines shown) of a console block; text before the first one is None."""
    out = []
    for number, line in enumerate(block.lines, block.line + 1):
        if out and out[-1][1] and out[-1][1].endswith("\\") and not out[-1][2]:
            out[-1][1] += "\n" + line
        elif line.startswith("$ "):
            out.append([number, line[2:], []])
        elif out:
            out[-1][2].append(line)
        elif line.strip():
            out.append([number, None, [line]])
    return out


def plain(line):
    return TIMES.sub("#", line.rstrip())


def pattern(shown):
    """The regular expression that the true output has to match as a whole."""
    out = ""
    for line in shown:
        if line.strip() == "…":
            out += r"(?:[^\n]*\n)*?"
        else:
            out += "[^\n]*".join(re.escape(part) for part in plain(line).split("…")) + "\n"
    return out


def first_difference(shown, true):
    """The longest beginning of the page that the output has, and what each says behind it."""
    joined = "".join(line + "\n" for line in true)
    n = len(shown)
    while n > 0 and not re.match(pattern(shown[:n]), joined):
        n -= 1
    if n == len(shown):
        return "the output goes on behind what is shown"
    begin = "".join(pattern([line]) for line in shown[:n])
    end = re.match(begin, joined).end() if n else 0
    rest = joined[end:].split("\n")[0] if end < len(joined) else "(nothing more)"
    return f"shown: {shown[n].rstrip()}\n    true:  {rest}"


def output_problem(shown, status, output):
    """What is wrong with a command's result, or None."""
    shown = list(shown)
    while shown and not shown[-1].strip():
        shown.pop()
    while shown and not shown[0].strip():
        shown.pop(0)
    if not any(line.strip() not in ("", "…") for line in shown):
        return None if status == 0 else f"ended with {status}: {output.strip()[:400]}"
    if status >= 126 or status == NO_EXIT_CODE or status < 0:
        return f"ended with {status}: {output.strip()[:400]}"
    true = [plain(line) for line in output.splitlines()]
    if not re.fullmatch(pattern(shown), "".join(line + "\n" for line in true)):
        return first_difference(shown, true)
    for line in shown:
        for word, code in VERDICTS.items():
            if re.match(rf"{word}(  |:)", line):
                fits = status == code
                return None if fits else f"shows {word}, exit code {code}, and ended with {status}"
    return None


def run(command, folder, path):
    """(exit status, both outputs) of a bash command."""
    env = {**os.environ, "PATH": f"{path}:{os.environ.get('PATH', '')}", "LC_ALL": "C.UTF-8",
           "TERM": "dumb", "NO_COLOR": "1"}
    try:
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=SECONDS, errors="replace")
    except subprocess.TimeoutExpired:
        return 124, f"it ran past {SECONDS} seconds"
    return done.returncode, done.stdout


class Page:
    """One page: problems, and how much of it ran."""

    def __init__(self, name):
        self.name, self.problems, self.not_run = name, [], []
        self.blocks = self.commands = self.compared = 0

    def problem(self, line, what):
        self.problems.append(f"{self.name}:{line}: {what}")

    def block(self, block, folder, path):
        shell, kind = block.language in SHELL, block.marker and block.marker[0]
        if kind == "not run":
            if not shell:
                self.problem(block.line, "a block that is no shell block is never run")
            self.not_run.append(f"{self.name}:{block.line}: not run: {block.marker[1]}")
        elif kind == "file":
            if shell:
                self.problem(block.line, "a shell block cannot become a file")
            target = (folder / block.marker[1]).resolve()
            if not target.is_relative_to(folder.resolve()):
                return self.problem(block.line, f"{block.marker[1]} lies outside the page's folder")
            target.write_text("".join(line + "\n" for line in block.lines), encoding="utf-8")
        elif block.language == "before" or block.language == "sh":
            self.blocks += block.language == "sh"
            status, output = run("set -e\n" + "\n".join(block.lines), folder, path)
            if status != 0:
                self.problem(block.line, f"ended with {status}: {output.strip()[:400]}")
        elif block.language == "console":
            self.blocks += 1
            for line, command, shown in commands(block):
                if command is None:
                    self.problem(line, "text in front of the first \"$ \" of a console block")
                    continue
                self.commands += 1
                self.compared += any(text.strip() for text in shown)
                if what := output_problem(shown, *run(command, folder, path)):
                    self.problem(line, f"$ {command}\n    {what}")


def run_page(root, path, program):
    page = Page(path.relative_to(root))
    blocks, problems = read_blocks(path.read_text(encoding="utf-8"))
    for line, what in problems:
        page.problem(line, what)
    with tempfile.TemporaryDirectory(prefix="samebits-docs-") as holder:
        names, folder = pathlib.Path(holder, "bin"), pathlib.Path(holder, "work")
        names.mkdir()
        folder.mkdir()
        (names / "samebits").symlink_to(program.resolve())
        for block in blocks:
            page.block(block, folder, names)
    return page


def check(root, program):
    root = pathlib.Path(root).resolve()
    files = [p for p in [root / "README.md", *sorted((root / "docs").rglob("*.md"))] if p.is_file()]
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        pages = list(pool.map(lambda p: run_page(root, p, program), files))
    total = {k: sum(getattr(p, k) for p in pages) for k in ("blocks", "commands", "compared")}
    problems = [what for page in pages for what in page.problems]
    if total["compared"] == 0:
        problems.append("no output of any page was compared")
    notes = [note for page in pages for note in page.not_run]
    return problems, (f"{len(pages)} pages, {total['blocks']} blocks run, {len(notes)} not run, "
                      f"{total['commands']} commands, the output of {total['compared']} compared"), notes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    args = parser.parse_args()
    if not args.program.is_file():
        print(f"check docs shell: FAILED, {args.program} is not built")
        return 1
    problems, scope, notes = check(pathlib.Path(__file__).parent.parent, args.program)
    for note in notes:
        print(note)
    return report.show("docs shell", problems, scope)


if __name__ == "__main__":
    sys.exit(main())
