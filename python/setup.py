"""Makes a wheel with the program that the variable LONGWIRE_BINARY names; without it, one of pure Python."""

import os
import sysconfig

from setuptools import setup

binary = os.environ.get("LONGWIRE_BINARY")
options = {}
if binary:
    from setuptools.command.bdist_wheel import bdist_wheel

    class WithProgram(bdist_wheel):
        """A wheel for any Python of this platform."""

        def finalize_options(self):
            super().finalize_options()
            self.root_is_pure = False

        def get_tag(self):
            return "py3", "none", sysconfig.get_platform().replace("-", "_").replace(".", "_")

    # Data keep their mode, and "bin" is where programs are, also in a virtual environment.
    # setuptools takes only paths from here.
    there = os.path.relpath(binary, os.path.dirname(os.path.abspath(__file__)))
    options = {"data_files": [("bin", [there])], "cmdclass": {"bdist_wheel": WithProgram}}

setup(**options)
