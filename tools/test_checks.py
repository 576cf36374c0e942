#!/usr/bin/env python3
"""Plants one violation after another and requires that each check finds it: a check that cannot
fail proves nothing."""
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_bit_tests
import check_docs
import check_docs_shell
import check_flags
import check_layers
import check_text
import coverage
import fuzz
import junit
import status
import summary

STRICT = "g++ -ffp-contract=off -fno-fast-math -march=x86-64-v3 -c {f} -o x.o"
NVCC = "/usr/local/cuda/bin/nvcc -fmad=false --ftz=false -prec-div=true -prec-sqrt=true -c {f}"


class Tree(unittest.TestCase):
    """A temporary tree to plant files in."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name)

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def one(self, problems, *words):
        self.assertEqual(len(problems), 1, problems)
        for word in words:
            self.assertIn(word, problems[0])


class Layers(Tree):
    def check(self):
        return check_layers.check(self.root)[0]

    def test_forward_is_fine(self):
        self.put("src/samebits/ops/a.cc",
                 '#include "samebits/ops/a.h"\n#include "samebits/base/b.h"\n')
        self.assertEqual(self.check(), [])

    def test_arrow_back(self):
        self.put("src/samebits/base/a.h", '#include <vector>\n#include "samebits/ops/b.h"\n')
        self.one(self.check(), "base/a.h:2", "must not know ops/")

    def test_unknown_folder(self):
        self.put("src/samebits/misc/a.h", "")
        self.one(self.check(), "no known layer")

    def test_unknown_target_and_relative_include(self):
        self.put("src/samebits/ops/a.h", '#include "samebits/misc/b.h"\n#include "../cli/c.h"\n')
        self.assertEqual(len(self.check()), 2)

    def test_nothing_scanned(self):
        self.one(self.check(), "nothing was checked")


class Flags(Tree):
    def check(self, command, file="/r/src/samebits/base/a.cc"):
        entry = {"directory": "/", "file": file, "command": command.format(f=file)}
        self.put("compile_commands.json", json.dumps([entry] if command else []))
        return check_flags.check(self.root)[0]

    def test_strict_is_fine(self):
        self.assertEqual(self.check(STRICT), [])
        self.assertEqual(self.check(NVCC, "/r/src/samebits/backend/cuda/a.cu"), [])

    def test_missing_flag(self):
        self.one(self.check(STRICT.replace("-ffp-contract=off", "")), "-ffp-contract is not given")
        self.one(self.check(STRICT.replace("-fno-fast-math", "")), "-fno-fast-math is not given")
        self.one(self.check(NVCC.replace("--ftz=false", "")), "-ftz is not given")

    def test_last_value_counts(self):
        self.one(self.check(STRICT + " -ffp-contract=fast"), "-ffp-contract is fast")
        self.one(self.check(NVCC + " --fmad true"), "-fmad is true")

    def test_forbidden(self):
        for flag in ("-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-frounding-math",
                     "-ffinite-math-only", "-fassociative-math"):
            self.one(self.check(STRICT + " " + flag), "has " + flag)
        self.one(self.check(NVCC + " -use_fast_math"), "has -use_fast_math")
        self.one(self.check(NVCC + " -Xcompiler=-O2,-ffast-math"), "has -ffast-math")

    def test_link_flags(self):
        self.put("build.ninja", "  LINK_FLAGS = -O2 -ffast-math\n")
        self.one(self.check(STRICT), "build.ninja", "-ffast-math")

    def test_no_data(self):
        self.one(check_flags.check(self.root)[0], "missing")
        self.one(self.check(""), "nothing was checked")


class BitTests(Tree):
    def check(self, text):
        self.put("src/samebits/ops/a_test.cc", text)
        return check_bit_tests.check(self.root)[0]

    def test_tolerances(self):
        for text in ("EXPECT_NEAR(a, b, 1e-3);", "ASSERT_FLOAT_EQ(a, b);",
                     "EXPECT_DOUBLE_EQ(a, b);", "EXPECT_TRUE(std::fabs(a - b) < 1e-3);", "EXPECT_LT(std::abs(a - b), 1e-3);",
                     "EXPECT_THAT(a, FloatEq(b));"):
            self.one(self.check(text + "\n"), "a_test.cc:1", "float tolerance")

    def test_named_reference(self):
        self.assertEqual(self.check("// tolerance: MPFR, 1 ulp\nEXPECT_NEAR(a, b, 1e-3);\n"), [])
        self.assertEqual(self.check("EXPECT_NEAR(a, b, 1e-3);  // tolerance: transformers 4\n"), [])
        run = "// tolerance: MPFR\nEXPECT_NEAR(a, b, 1);\nEXPECT_NEAR(c, d, 1);\n"
        self.assertEqual(self.check(run), [])
        self.one(self.check(run + "int x;\nEXPECT_NEAR(e, f, 1);\n"), "a_test.cc:5")
        self.one(self.check("// tolerance:\nEXPECT_NEAR(a, b, 1e-3);\n"), "float tolerance")

    def test_bits_are_fine(self):
        self.assertEqual(self.check("EXPECT_EQ(float_bits(a), float_bits(b));\n"), [])

    def test_nothing_scanned(self):
        self.one(check_bit_tests.check(self.root)[0], "nothing was checked")


class Text(Tree):
    def check(self, name, text):
        self.put(name, text)
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        subprocess.run(["git", "-C", str(self.root), "add", "-A"], check=True)
        return check_text.check(self.root)[0]

    def test_clean(self):
        text = "// What it is: Σ.\n#pragma once\n"
        self.assertEqual(self.check("src/samebits/base/a.h", text), [])

    def test_own_header_first_is_fine(self):
        self.assertEqual(self.check("src/samebits/base/a.cc", '#include "samebits/base/a.h"\n'), [])

    def test_no_opening_comment(self):
        self.one(self.check("src/samebits/base/a.h", "#pragma once\n"), "a.h:1", "comment")

    def test_machine_path(self):
        self.one(self.check("docs/a.md", "look at /wo" + "rk/x\n"), "path of one machine")

    def test_notes_to_self(self):
        for word in ("TODO", "FIXME", "issue #3", "last session"):
            self.one(self.check("docs/a.md", f"a {word} b\n"), "a.md:1")

    def test_form(self):
        self.one(self.check("docs/a.md", "blank \n"), "trailing")
        self.one(self.check("docs/a.md", "no end"), "newline")
        self.assertTrue(any("carriage" in p for p in self.check("docs/a.md", "a\r\n")))
        self.one(self.check("docs/a.md", b"\xff\n"), "UTF-8")

    def test_size(self):
        self.one(self.check("goldens/a.bin", b"0" * 500_001), "bytes")

    def test_tab(self):
        self.one(self.check("src/samebits/base/a.h", "// x\n\tint a;\n"), "a.h:2", "a tab")

    def test_length(self):
        self.one(self.check("src/samebits/base/a.h", "// x\n" * 601), "601 lines")

    def test_nothing_scanned(self):
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        self.one(check_text.check(self.root)[0], "nothing was checked")


class Docs(Tree):
    README = "`make demo`, `make test`: `demo`, `model show`\n"

    def check(self, text, program=None):
        self.put("README.md", self.README)
        self.put("docs/a.md", text)
        return check_docs.check(self.root, program)[0]

    def program(self):
        path = self.put("samebits", '#!/bin/sh\necho "Options:\n  --help"\ncase "$*" in\n'
                        '--help) echo "Subcommands:\n  model  x\n  demo  y" ;;\n'
                        '"model --help") echo "  --json\nSubcommands:\n  show  x" ;;\n'
                        '"model show --help") echo "  --json\nPresets:\n  tiny  small" ;;\nesac\n')
        path.chmod(0o755)
        return check_docs.Program(path)

    def test_links(self):
        good = "# One two\n[r](../README.md) [a](#one-two) [w](https://x.y)\n"
        self.assertEqual(self.check(good), [])
        self.one(self.check("[r](missing.md)\n"), "a.md:1", "leads nowhere")
        self.one(self.check("# One\n[r](#two)\n"), "no heading #two")

    def test_links_in_code_do_not_count(self):
        self.assertEqual(self.check("```cpp\n[x](y)\n```\n"), [])

    def test_readme(self):
        self.one(check_docs.check(self.root)[0], "README.md: missing")
        self.put("README.md", "`make demo`\n")
        self.one(check_docs.check(self.root)[0], "make test")

    def test_readme_lists_every_command(self):
        self.put("README.md", "`make demo`, `make test`: `demo`, `model`\n")
        self.one(check_docs.check(self.root, self.program())[0], "does not list `model show`")

    def test_commands(self):
        def run(line):
            text = f"```console\n$ samebits {line}\nsamebits nonsense\n```\n"
            return self.check(text, self.program())
        self.assertEqual(run("model show DIR --json"), [])
        self.one(run("modle show DIR"), "a.md:2", "'modle' is no subcommand")
        self.one(run("model show DIR --jsom"), "no option --jsom")


class DocsShell(Tree):
    """A page against a program that prints fixed lines."""

    PROGRAM = """#!/bin/sh
case "$1" in
  three) printf 'one\\ntwo 1.5 s (20 tokens/s)\\nthree\\n' ;;
  drift) echo 'DRIFT  something'; exit 1 ;;
  liar) echo 'DRIFT  something' ;;
  bad) echo 'no' >&2; exit 5 ;;
  bug) echo 'oops'; exit 70 ;;
esac
"""

    def check(self, page):
        program = self.put("bin/samebits", self.PROGRAM)
        program.chmod(0o755)
        self.put("README.md", page)
        return check_docs_shell.check(self.root, program)

    def problems(self, *lines, before="", fence="console"):
        good = "```console\n$ samebits three\none\n…\n```\n"  # so that something was compared
        text = good + before + f"```{fence}\n" + "\n".join(lines) + "\n```\n"
        return self.check(text)[0]

    def test_true_output_is_fine(self):
        self.assertEqual(self.problems("$ samebits three", "one", "two 9.25 s (1 tokens/s)",
                                       "three"), [])
        self.assertEqual(self.problems("$ samebits three", "…", "three"), [])
        self.assertEqual(self.problems("$ samebits three", "o…", "tw… s…", "…"), [])
        self.assertEqual(self.problems("$ samebits drift", "DRIFT  something"), [])
        self.assertEqual(self.problems("$ samebits bad", "no"), [])
        self.assertEqual(self.problems("$ samebits \\", "  three"), [])

    def test_another_line_another_order_a_line_less_a_line_more(self):
        for shown in (["one", "two 1.5 s (20 tokens/s)", "four"], ["one", "three"], ["one"],
                      ["three", "…", "one"], ["…", "four"], ["one", "…", "three", "more"],
                      ["one", "two 1.5 ms (20 tokens/s)", "three"]):
            self.one(self.problems("$ samebits three", *shown), "README.md:7")

    def test_the_difference_is_shown(self):
        self.one(self.problems("$ samebits three", "one", "…", "four"), "shown: four")
        self.one(self.problems("$ samebits three", "one", "2"), "shown: 2", "true:  two")

    def test_exit_codes(self):
        self.one(self.problems("$ samebits bad"), "ended with 5: no")
        self.one(self.problems("$ samebits bug", "oops"), "ended with 70")
        self.one(self.problems("$ samebits liar", "DRIFT  something"), "exit code 1")
        self.one(self.problems("$ nothing-of-this-name", "…"), "ended with 127")
        self.one(self.problems("samebits three", "false", "true", fence="sh"), "ended with 1")

    def test_what_is_not_run_is_listed(self):
        page = ("<!-- not run: no such program -->\n```sh\nnothing-of-this-name\n```\n"
                "```console\n$ samebits three\none\n…\n```\n")
        problems, scope, notes = self.check(page)
        self.assertEqual(problems, [])
        self.one(notes, "README.md:2", "no such program")
        self.assertIn("1 not run", scope)

    def test_files_and_commands_unseen_by_readers(self):
        self.assertEqual(self.problems("$ cat b", "x", before="<!-- file: a -->\n```json\nx\n```\n"
                                       "<!-- before: cp a b -->\n"), [])
        self.one(self.problems("$ true", before="<!-- before: false -->\n"), "ended with 1")
        self.one(self.problems("$ true", before="<!-- file: ../a -->\n```json\nx\n```\n"),
                 "outside")

    def test_comments_that_do_nothing(self):
        self.one(self.problems("$ true", before="<!-- not run: because -->\nText.\n"), "no block")
        self.one(self.problems("x", before="<!-- not run: because -->\n", fence="cpp"),
                 "never run")

    def test_nothing_compared(self):
        self.one(self.check("```console\n$ samebits three\n```\n")[0], "no output")
        self.one(self.check("text\n")[0], "no output")


class Status(Tree):
    JUNIT = ('<testsuite><testcase name="A.x" status="run"/><testcase name="A.y" status="fail">'
             '<failure/></testcase><testcase name="B.x" status="run"/>'
             '<testcase name="B.y" status="notrun"><skipped/></testcase>'
             '<testcase name="C.x" status="notrun"><skipped/></testcase></testsuite>')
    ITEMS = {"g": [{"name": "one", "cpu": ["^B"]}, {"name": "two"}]}

    def test_cells(self):
        results = junit.read(self.put("junit.xml", self.JUNIT))
        for patterns, state in ((["^A"], "failing"), (["^B"], "done"), (["^C"], "not run"),
                                (["^D"], "not run"), ([], "not started"), (None, "not started")):
            self.assertEqual(status.cell(patterns, results)[0], state)

    def test_committed_page(self):
        results = junit.read(self.put("junit.xml", self.JUNIT))
        page = self.put("status.md", status.render(self.ITEMS, results))
        self.assertEqual(status.check(page, self.ITEMS), [])
        self.one(status.check(page, {"g": [{"name": "two"}]}), "not those of")
        self.one(status.check(self.put("b.md", "# Status\n"), self.ITEMS), "not written by")
        self.one(status.check(self.root / "c.md", self.ITEMS), "missing")
        failing = status.render({"g": [{"name": "one", "cpu": ["^A"]}]}, results)
        self.one(status.check(self.put("d.md", failing), {"g": [{"name": "one"}]}), "failing")

    def test_no_run(self):
        with self.assertRaises(SystemExit):
            junit.read(self.root / "junit.xml")

    def test_summary_of_nothing(self):
        path = self.put("junit.xml", "<testsuite/>")
        with contextlib.redirect_stdout(io.StringIO()):
            sys.argv = ["summary", str(path)]
            self.assertEqual(summary.main(), 1)


class Fuzz(Tree):
    def harness(self, script):
        self.put("fuzz/fuzz_safetensors", "#!/bin/sh\n" + script).chmod(0o755)
        return fuzz.run(self.root, "safetensors", 1)[1]

    def test_results(self):
        ran = "echo stat::number_of_executed_units: 7"
        self.assertEqual(self.harness(ran), "clean")
        self.assertEqual(self.harness("exit 0"), "ran nothing")
        self.assertIn("FAILED", self.harness(ran + "; exit 77"))
        self.assertEqual(fuzz.run(self.root, "no_such_reader", 1)[1], "no seeds")

    def test_coverage_of_files(self):
        hit = {"a.cc": {1: True, 2: True}, "b.cc": {1: True, 2: False}}
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(coverage.show_files(hit, ["a.cc"], 90), 0)
            self.assertEqual(coverage.show_files(hit, ["b.cc"], 90), 1)
            self.assertEqual(coverage.show_files(hit, ["absent.cc"], 90), 1)
        self.assertIn("not run: 2", out.getvalue())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
