"""Tests of the pure core: values and a virtual clock, nothing else."""
