mpirun -np 16 -H h1:8,h2:8 -x LD_LIBRARY_PATH --bind-to none python3 -u train.py --epochs 3
