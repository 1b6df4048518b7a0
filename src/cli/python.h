/* SPDX-License-Identifier: MIT */
/* Verbs that are written in Python. */
#ifndef GP_CLI_PYTHON_H
#define GP_CLI_PYTHON_H

/*
 * Becomes python3, with the package gpreempt that belongs to this program, and main() of one of its modules
 * with these words, ended by NULL.  It returns only if that fails: the exit code, after a complaint.
 */
int gp_python_run(const char *module, char *const *words);

#endif
