"""Acknowledged events are removed from the journal, and a restarted agent continues from there."""
import os, signal
from agent_talk import Agent, check

agent = Agent()
agent.connect()
agent.start(1, {'FAKE_MODE': 'flood', 'FAKE_STEP_MS': '300', 'FAKE_STEPS': '1000000'})
while agent.next < 40000:
    agent.wait('metrics', 30)
    agent.send(command='ack', sequence=agent.next)
agent.wait('alive')
info = os.stat(agent.folder + '/journal.jsonl')
held, size = info.st_blocks * 512, info.st_size
if any('cannot free disk space of the journal' in e.get('text', '') for e in agent.seen):
    print('skipped: the file system has no holes')
    raise SystemExit(77)
print(f'journal: {size} bytes long, {held} on the disk')
check(size > 4 << 20 and held < size / 2, f'{held} of {size} bytes are still on the disk')
agent.send(command='ack', sequence=agent.next)
os.kill(agent.pid, signal.SIGKILL)
while agent.hear(20) is not None:  # events that were sent before the agent died
    pass
agent.bridge = None
hello = agent.connect()
check(hello['acknowledged'] > 0, f'{hello}')
agent.wait('exited', 30, reason='agent_lost')
agent.wait('released', left=[])
check(sum(e['event'] == 'exited' for e in agent.seen) == 1, 'it died twice')
# A supervisor that has forgotten everything gets what still exists: the beginning, and the unacknowledged events.
agent.send(command='attach', protocol=1, run='talk', attempt=1, **{'from': 0})
agent.next = 0
agent.wait('started')
agent.next = None
while (event := agent.hear(20))['event'] != 'released':
    pass
check(event['left'] == [], f'{event}')
agent.send(command='bye')
