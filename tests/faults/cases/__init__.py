"""The table's rows, a module for each chapter of cases."""
