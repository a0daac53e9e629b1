"""run.sh where there is no GPU: what it says it does with programs that pass, fail, run nothing or are not there. The machine's GPU, its
sanitizer and the programs are stand-ins.

    python3 run_test.py"""
import os
import pathlib
import subprocess
import tempfile
import unittest

RUN = pathlib.Path(__file__).with_name("run.sh")
TESTS = RUN.parent.parent


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.build = self.path / "build"
        self.program("bin/nvidia-smi", "echo 'a GPU'")
        self.program("bin/compute-sanitizer", 'while [ $# -gt 0 ]; do case "$1" in --*) shift 2 ;; *) break ;; esac; done; exec "$@"')
        for kind in "conformance", "cuda_ops":
            for path in TESTS.glob(f"{kind}/*.cpp"):
                self.program(f"build/tests/{kind}/{kind}_{path.stem}", "echo '[  PASSED  ] 3 tests.'")
        for name in "tests/ops_laws", "tests/ops_layers_everywhere", "tests/bench_cuda", "examples/train_gpt", "src/libckpt_cuda.so":
            self.program(f"build/{name}", 'echo "$CKPT_TEST_TARGET $CKPT_PLUGIN_PATH $@"')

    def program(self, name, text):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def run_sh(self, *arguments, status):
        environment = {**os.environ, "PATH": f"{self.path}/bin:{os.environ['PATH']}", "CKPT_GPU_BUILD": str(self.build), "CKPT_PREFIX": str(self.path / "none")}
        done = subprocess.run(["bash", RUN, *arguments], capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_without_a_gpu(self):
        self.program("bin/nvidia-smi", "exit 9")
        self.assertIn("no GPU", self.run_sh(status=77))

    def test_arguments(self):
        self.assertIn("there is no part test;", self.run_sh("--only", "build,test", status=2))
        self.assertIn("unknown argument --fast", self.run_sh("--fast", status=2))
        self.run_sh("--only", status=1)

    def test_all_pass(self):
        self.assertIn("all passed", self.run_sh("--only", "tests,sanitize", status=0))
        output = (self.build / "results" / "graph.txt").read_text()
        self.assertTrue(output.startswith(f"cuda {self.build.resolve()}/src --device cuda"), output)

    def test_every_suite_that_is_about_the_device_runs(self):
        self.run_sh("--only", "tests", status=0)
        ran = {path.stem for path in (self.build / "results").iterdir()}
        for kind in "conformance", "cuda_ops":
            self.assertLessEqual({f"{kind}_{path.stem}" for path in TESTS.glob(f"{kind}/*.cpp") if not path.stem.endswith(("faults", "errors"))}, ran)

    def test_what_fails_or_runs_nothing_is_named(self):
        for text in "exit 1", "echo '[  PASSED  ] 0 tests.'", "echo '../target.h:98: Skipped'; echo '[  PASSED  ] 12 tests.'":
            with self.subTest(text=text):
                self.program("build/tests/conformance/conformance_tape", text)
                self.assertIn("failed: conformance_tape;", self.run_sh("--only", "tests", status=1))
        (self.build / "tests" / "cuda_ops" / "cuda_ops_rows").unlink()
        self.assertIn("failed: conformance_tape cuda_ops_rows;", self.run_sh("--only", "tests", status=1))

    def test_without_a_plugin(self):
        (self.build / "src" / "libckpt_cuda.so").unlink()
        self.assertIn("the build failed", self.run_sh("--only", "tests", status=1))


if __name__ == "__main__":
    unittest.main()
