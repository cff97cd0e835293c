python train.py --name "it's" --empty '' --glob '*.txt' --json '{"a": [1, 2]}'
