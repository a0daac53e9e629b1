"""`python -m ckpt` is the command `ckpt`."""
import os
import pathlib
import subprocess
import sys


def main() -> int:
    name = "ckpt.exe" if os.name == "nt" else "ckpt"
    command = pathlib.Path(__file__).parent / name
    if not command.exists():
        print("ckpt: this package was built without the command (CLI11 was missing): install libcli11-dev and build it again", file=sys.stderr)
        return 1
    if os.name == "posix":
        sys.stdout.flush()
        os.execv(command, ["ckpt", *sys.argv[1:]])
    return subprocess.call([command, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
