"""The home of a node was wiped during an attempt: processes that still run are ended before the next attempt starts
there. If the attempt's folder still exists, its own agent ends them."""
import os, shutil, tempfile, time
os.environ['DTRUN_TEST_TIMES'] = '0.2'  # an agent without ranks and supervisor exits after 2 s
from agent_talk import Agent, check

top = tempfile.mkdtemp(prefix='dtrun-talk.')
first = Agent(top + '/attempt-1/node-0')
first.connect()
first.start(2, {'FAKE_STEP_MS': '5', 'FAKE_STEPS': '1000000'})
pids = [first.wait('started')['pid'] for _ in range(2)]
first.wait('metrics', step=3)
first.disconnect()
shutil.rmtree(top + '/attempt-1')
second = Agent(top + '/attempt-2/node-0')
second.connect()
second.start(1, {'FAKE_STEP_MS': '5', 'FAKE_STEPS': '10'})
second.wait('started')


def lives(pid):
    try:
        with open(f'/proc/{pid}/stat') as file:
            return file.read().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False


check(not any(lives(pid) for pid in pids), 'ranks of the first attempt live beside those of the second')
second.wait('released', left=[])
second.send(command='bye')
second.disconnect()
while first.is_alive():  # the agent exits by itself, because it has no ranks left
    time.sleep(0.05)
shutil.rmtree(top)
