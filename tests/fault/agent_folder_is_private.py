"""Only the owner can use the agent's folder: modes, links, other owners; ranks keep their umask."""
import os, stat, subprocess, sys, tempfile
from agent_talk import Agent, BIN, check

os.umask(0o002)
agent = Agent()
os.mkdir(agent.folder, 0o777)
os.chmod(agent.folder, 0o777)
agent.connect()
agent.start(1, {'FAKE_STEPS': '3'})
agent.wait('released', left=[])
for name in [''] + os.listdir(agent.folder):
    mode = stat.S_IMODE(os.lstat(os.path.join(agent.folder, name)).st_mode)
    check(mode == (0o600 if name else 0o700), f"'{name}' has mode {mode:o}")
check({'journal.jsonl', 'agent.lock', 'agent.log', 'plan.json', 'agent.sock'} <=
      set(os.listdir(agent.folder)), 'a file is missing')
agent.send(command='bye')
agent.disconnect()


def refused(folder, words):
    done = subprocess.run([BIN + '/dtrun-agent', 'connect', folder, '--start'],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    check(done.returncode == 3 and words in done.stderr, f'{folder}: {done.returncode} {done.stderr}')


top = agent.top
os.mkdir(top + '/elsewhere')
os.symlink(top + '/elsewhere', top + '/link')
refused(top + '/link', 'it is a link')
check(os.listdir(top + '/elsewhere') == [], 'something was written through a link')
for name in ('journal.jsonl', 'agent.lock', 'agent.log'):
    folder = f'{top}/with-{name}'
    os.mkdir(folder, 0o700)
    os.symlink(top + '/elsewhere/file', f'{folder}/{name}')
    refused(folder, name)
    check(os.listdir(top + '/elsewhere') == [], f'{name} was written through a link')
if os.geteuid() == 0:
    os.mkdir(top + '/other')
    os.chown(top + '/other', 12345, 12345)
    refused(top + '/other', 'belongs to user 12345')
