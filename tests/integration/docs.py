# SPDX-License-Identifier: MIT
"""What the documents show is what the programs print."""
import os
import pathlib
import re
import subprocess

BUILD = pathlib.Path(os.environ['GPREEMPT_BUILD'])
SOURCE = pathlib.Path(os.environ['GPREEMPT_SOURCE'])


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def readme_table_is_what_the_command_prints():
    text = (SOURCE / 'README.md').read_text()
    command, shown = re.search(r'```\n\$ gpreempt (.+)\n((?:.*\n)*?)```', text).groups()
    return shown.split('\n') == (output(BUILD / 'gpreempt', *command.split())).split('\n')


def h200_table_of_the_model_is_what_the_test_prints():
    row = re.compile(r'^# (.+?) +p99 over exclusive: model (\S+), measured (\S+); offline (\S+)$', re.M)
    printed = row.findall(output(BUILD / 'tests' / 'test_h200'))
    shown = re.findall(r'^\| (.+?) \| ([\d.]+) \| ([\d.]+|-) \| ([\d.]+) \|$', (SOURCE / 'docs/MODEL.md').read_text(), re.M)
    return len(printed) > 0 and printed == shown


TESTS = [readme_table_is_what_the_command_prints, h200_table_of_the_model_is_what_the_test_prints]

print(f'1..{len(TESTS)}')
for number, test in enumerate(TESTS, 1):
    print(f"{'ok' if test() else 'not ok'} {number} - {test.__name__.replace('_', ' ')}")
