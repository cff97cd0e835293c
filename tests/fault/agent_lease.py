"""failure.launcher_lost on the node: ranks that nobody supervises save and end, and not sooner."""
import time
from agent_talk import Agent, check

LEASE = 3
endless = {'FAKE_STEP_MS': '20', 'FAKE_STEPS': '1000000'}

# a supervisor that answers, gone for good
agent = Agent()
agent.connect()
agent.start(2, endless, launcher_lost_seconds=LEASE)
begun = time.monotonic()
while time.monotonic() - begun < 2 * LEASE:
    agent.wait('alive')
check(not any(e['event'] == 'stopping' for e in agent.seen), 'one that is supervised was stopped')
agent.disconnect()
end = time.monotonic() + 30
while time.monotonic() < end and not any(e['event'] == 'released' for e in agent.journal()):
    time.sleep(0.1)
agent.connect()
check(agent.wait('stopping')['reason'] == 'launcher_lost', 'it was stopped for another reason')
agent.wait('checkpoint')
agent.wait('finished', reason='stopped')
agent.wait('exited', code=0)
agent.wait('released', left=[])
agent.send(command='bye')
agent.disconnect()

# one whose connection looks whole, and that says nothing
mute = Agent()
mute.connect()
mute.answers_alive = False
mute.start(1, endless, launcher_lost_seconds=LEASE)
mute.wait('stopping', reason='launcher_lost')
mute.wait('released', left=[])
