#pragma once

#include <string>

namespace heddle::test {

// What all_reduce_perf of 2026 prints on two nodes of two GPUs, written for these tests.
inline const std::string kAllReducePerf = R"(# nccl-tests version 2.18.0 nccl-headers=22907 nccl-library=22907
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 67108864 maxBytes 268435456 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0
#
# Using devices
#  Rank  0 Group  0 Pid     51 on nccl-worker-0 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid     52 on nccl-worker-0 device  1 [0000:2c:00] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid     47 on nccl-worker-1 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid     48 on nccl-worker-1 device  1 [0000:2c:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong 
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         
    67108864      16777216     float     sum      -1   812.45   82.60  123.90       0   809.11   82.94  124.41       0
   134217728      33554432     float     sum      -1  1533.02   87.55  131.33       0  1530.00   87.72  131.59       0
   268435456      67108864     float     sum      -1   3.1e+03   86.59  129.89       0  3001.4   89.44  134.15       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 129.21 
#
# Collective test concluded: all_reduce_perf
#
)";

// alltoall_perf of 2022 under mpirun --tag-output: no program's name, one check for both ways.
inline const std::string kTaggedAllToAll = R"([1,0]<stdout>:# nThread 1 nGpus 1 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
[1,0]<stdout>:#
[1,0]<stdout>:# Using devices
[1,0]<stdout>:#   Rank  0 Pid   1320 on    gpu-01 device  0 [0x1b] NVIDIA A100-SXM4-40GB
[1,0]<stdout>:#   Rank  1 Pid   2066 on    gpu-02 device  0 [0x1b] NVIDIA A100-SXM4-40GB
[1,0]<stdout>:#
[1,0]<stdout>:#                                                       out-of-place                       in-place
[1,0]<stdout>:#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
[1,0]<stdout>:#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
[1,1]<stdout>:gpu-02:2066:2071 [0] NCCL INFO Using network IB
[1,0]<stdout>:     1048576        131072     float    none      -1    101.2   10.36    5.18      0    99.70   10.52    5.26    N/A
[1,0]<stdout>:gpu-01:1320:1344 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA
[1,0]<stdout>:     2097152        262144     float    none      -1    150.9   13.90    6.95     16    149.1   14.07    7.03    N/A
[1,0]<stdout>:# Out of bounds values : 1 FAILED
[1,0]<stdout>:# Avg bus bandwidth    : 6.1
)";

// all_gather_perf of 2019: no redop, no root, and the largest error instead of a count.
inline const std::string kOldAllGather = R"(#                                             out-of-place                       in-place
#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)             (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
  4294967296     134217728   float    29122  129.05  129.05  1e+00    29169  128.84  128.84  1e+00
 Out of bounds values : 2 FAILED
# Out of bounds values : 2 FAILED
)";

}  // namespace heddle::test
