from nkigen.testing import Mode, nkigen_test, run_kernel_test

__all__ = ["Mode", "nkigen_test", "run_kernel_test"]
