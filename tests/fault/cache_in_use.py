"""Files that ranks run from stay in a cache that several machines share, although the machine that prunes cannot see
their processes: here each is in a separate process namespace. The files are removed when the ranks have ended."""
import os, re, shutil, subprocess, sys, time
import agent_talk
from agent_talk import BIN, Agent, check

can = subprocess.run(['unshare', '-pf', '--mount-proc', 'true'], capture_output=True).returncode == 0
if not can or shutil.which('zstd') is None:
    print('skipped: wants process namespaces (root) and zstd')
    sys.exit(77)

agent = Agent()
cache = agent.top + '/cache'
used = {name: f'{cache}/{name}' for name in ('agents/aaaa', 'bundles/bbbb', 'data/cccc')}
os.makedirs(used['bundles/bbbb'] + '/bin')
os.makedirs(used['data/cccc'])
os.makedirs(cache + '/agents')
shutil.copy(BIN + '/dtrun-agent', used['agents/aaaa'])
shutil.copy(BIN + '/dtrun-agent', cache + '/agents/ffff')  # a file of another machine
shutil.copy(BIN + '/fake_engine', used['bundles/bbbb'] + '/bin/dtrun-engine')
open(used['data/cccc'] + '/corpus.txt', 'w').close()

usual = subprocess.Popen


def apart(words, **more):
    return usual(['unshare', '-pf', '--kill-child', '--mount-proc', used['agents/aaaa']] + words[1:], **more)


def prune(bundle):
    """Months later, a launch from elsewhere brings another bundle."""
    for path in used.values():
        if os.path.exists(path):
            os.utime(path, (time.time() - 90 * 86400,) * 2)
    packed = subprocess.run(['zstd', '-q', '-c'], input=b'{"files": []}\n', capture_output=True, check=True)
    subprocess.run(['unshare', '-pf', '--mount-proc', cache + '/agents/ffff', 'node', 'receive', bundle],
                   input=packed.stdout, check=True, capture_output=True)
    return [name for name, path in used.items() if os.path.exists(path)]


agent_talk.subprocess.Popen = apart
agent.connect()
plan = agent_talk.plan(1)
plan['recipe'] = {'data': {'train': [used['data/cccc'] + '/corpus.txt']}}
agent.send(command='start', engine=used['bundles/bbbb'] + '/bin/dtrun-engine', plan=plan, node=0,
           environment={'FAKE_STEP_MS': '20', 'FAKE_STEPS': '1000000'})
agent.wait('metrics')
agent_talk.subprocess.Popen = usual
left = prune('1111')
check(left == list(used), f'of what is in use only {left} is left')

# A mark that its agent did not remove counts for a week
marks = os.listdir(cache + '/uses')
check(len(marks) == 3, f'the marks are {marks}')
stale = f'{cache}/uses/bundles-dddd.elsewhere.abcdef'
used['bundles/dddd'] = cache + '/bundles/dddd'
os.mkdir(used['bundles/dddd'])
open(stale, 'w').close()
check('bundles/dddd' in prune('2222'), 'a bundle that another machine uses is removed')
os.utime(stale, (time.time() - 8 * 86400,) * 2)
check('bundles/dddd' not in prune('3333'), 'a bundle with a mark of last week stays')
check(not os.path.exists(stale), 'a mark of last week stays')

# Two machines can have the same host name: a mark of another boot counts while its user refreshes it
host = re.sub('[/.]', '_', os.uname().nodename)
stale = f'{cache}/uses/bundles-dddd.{host}.abcdef'
os.mkdir(used['bundles/dddd'])
with open(stale, 'w') as file:
    file.write('00000000-0000-4000-8000-000000000000')
check('bundles/dddd' in prune('2222'), 'a bundle that a machine with the same host name uses is removed')
os.utime(stale, (time.time() - 3 * 3600,) * 2)
check('bundles/dddd' not in prune('3333'), 'a bundle of a boot that is over stays')
check(not os.path.exists(stale), 'a mark of a boot that is over stays')

agent.send(command='stop', grace_seconds=5)
agent.wait('released', left=[])
agent.send(command='bye')
agent.disconnect()
check(os.listdir(cache + '/uses') == [], f'marks are left: {os.listdir(cache + "/uses")}')
left = prune('4444')
check(left == [], f'what nobody uses stays: {left}')
