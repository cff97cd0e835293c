"""failure.launcher_lost on the node: ranks without a supervisor save and end, but not too early. An agent without ranks
and supervisor exits, except where it is held; no agent is started for a connection that has ended."""
import os, socket, subprocess, time
os.environ['DTRUN_TEST_TIMES'] = '0.2'  # an agent without ranks and supervisor exits after 2 s
from agent_talk import BIN, Agent, check

LEASE = 2
endless = {'FAKE_STEP_MS': '20', 'FAKE_STEPS': '1000000'}

# an agent that is abandoned before it got a plan; checked again at the end
left_alone = Agent()
left_alone.connect()
left_alone.disconnect()

# an agent that no connection started, in a state in which none could start it
held = Agent()
os.mkdir(held.folder, 0o700)
serving = subprocess.Popen([BIN + '/dtrun-agent', 'serve', held.folder], stdin=subprocess.DEVNULL)

# a command that arrives when nobody waits for it any more, like one that a cut network delayed
late = Agent()
ours, theirs = socket.socketpair()  # standard input and output as sshd provides them to a command
ours.close()
done = subprocess.run([BIN + '/dtrun-agent', 'connect', late.folder, '--start'], stdin=theirs,
                      capture_output=True, text=True)
check(done.returncode == 3 and 'the caller is gone' in done.stderr, f'it says {done}')
check(not os.path.exists(late.folder), 'it makes a folder')

# a supervisor that answers, and then is gone for good
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

# a supervisor whose connection looks intact, but that sends nothing
mute = Agent()
mute.connect()
mute.answers_alive = False
mute.start(1, endless, launcher_lost_seconds=LEASE)
mute.wait('stopping', reason='launcher_lost')
mute.wait('released', left=[])

end = time.monotonic() + 30
while left_alone.is_alive() and time.monotonic() < end:
    time.sleep(0.1)
check(not left_alone.is_alive(), 'an agent that nobody needs stays')
check(serving.poll() is None, 'an agent that is held leaves')
