"""The agent's cost on a node: < 5 MB resident while ranks report; prints how soon it serves."""
import subprocess, time
from agent_talk import Agent, BIN, check

if b'INTERP' in subprocess.run(['readelf', '-lW', BIN + '/dtrun-agent'], capture_output=True).stdout:
    print('skipped: this agent is not static (built with a sanitizer)')
    raise SystemExit(77)


def resident(pid):
    with open(f'/proc/{pid}/status') as file:
        values = dict(line.split(':', 1) for line in file)
    return int(values['VmRSS'].split()[0]), int(values['VmHWM'].split()[0])


agent = Agent()
begun = time.monotonic()
agent.connect()
print(f'connect --start to hello: {1e3 * (time.monotonic() - begun):.0f} ms')
print(f'resident: {resident(agent.pid)[0]} kB idle')
agent.start(2, {'FAKE_MODE': 'flood', 'FAKE_STEP_MS': '100', 'FAKE_STEPS': '8'})
agent.wait('metrics', step=8, seconds=60)
now, most = resident(agent.pid)
print(f'resident: {now} kB with two ranks, {most} kB at most, after {agent.next} events')
check(now < 5 * 1024, f'{now} kB are resident')
agent.wait('released', left=[], seconds=60)
