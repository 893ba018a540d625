"""An instance as oracle_instances prints it, and what is asked of any answer to it, worked out anew: which ranks make
a group, which pods must share a cell, what a plan breaks and how far it spreads."""

from collections import defaultdict

# Design section 6, TP = EP >> CP > FSDP > DP > PP, in the gigabytes of the default objective times six.
WEIGHTS = {"tp": 384, "ep": 384, "cp": 96, "fsdp": 48, "dp": 24, "pp": 1}


class Instance:
    def __init__(self, line):
        self.seed, self.nodes_max, self.answer = line["seed"], line["nodes_max"], line["answer"]
        self.nodes, self.pods, self.sizes = line["nodes"], line["pods"], line["sizes"]
        self.require = [tuple(r) for r in line["require"]]
        if not any(axis == "tp" for axis, _ in self.require):
            self.require.append(("tp", "nvlink"))
        self.order, self.allowed = line["order"], line["allowed"]
        for n, node in enumerate(self.nodes):
            # A node that NVLink joins to nothing is a place of its own that no group of two can meet "nvlink" in.
            node["place"] = node["domain"] if node["domain"] >= 0 else -1 - n
        self.pod_of_rank = [p for p, pod in enumerate(self.pods) for _ in range(pod["gpus"])]

    def name(self):
        return f"--seed {self.seed} --count 1 --nodes-max {self.nodes_max}"

    def world(self):
        return self.sizes["tp"] * self.sizes["cp"] * self.sizes["dp"] * self.sizes["pp"]

    def groups(self, axis):
        """Sets of pods, one for every group of ranks, doubles left out."""
        stride, size = self.stride(axis)
        ranks = defaultdict(list)
        for rank in range(self.world()):
            ranks[rank // (stride * size), rank % stride].append(self.pod_of_rank[rank])
        return sorted({tuple(sorted(set(pods))) for pods in ranks.values()})

    def stride(self, axis):
        if axis == "gang":
            return 1, self.world()
        if axis == "ep":
            etp, stride = self.sizes["etp"] or self.sizes["tp"], 1
            for before in self.order:
                if before in ("dp", "pp"):
                    break
                stride *= etp if before == "tp" else 1
            return stride, self.sizes["ep"]
        stride = 1
        for before in self.order:
            if before == ("dp" if axis == "fsdp" else axis):
                break
            stride *= self.sizes[before]
        return stride, max(1, self.sizes[axis])

    def axes(self):
        return [axis for axis in WEIGHTS if self.stride(axis)[1] > 1]

    def cell(self, level, node):
        """Where a node stands at a level; None = nobody knows, so that no two nodes share it."""
        where = self.nodes[node]
        return {"node": node, "nvlink": where["domain"] if where["domain"] >= 0 else None, "su": where["unit"],
                "spine": where["spine"]}[level]

    def together(self):
        """(level, pods that must share a cell of it) for every required group. Pods without GPUs belong to the gang."""
        out = set()
        for axis, level in self.require:
            if self.stride(axis)[1] < 2 and not (axis == "gang" and len(self.pods) > 1):
                continue
            groups = [tuple(range(len(self.pods)))] if axis == "gang" else self.groups(axis)
            out.update((level, pods) for pods in groups)
        return sorted(out)

    def may_hold(self, pod, node):
        where, wanted = self.nodes[node], self.pods[pod]
        return (where["usable"] and where["free"] >= wanted["gpus"] and where["cpu"] >= wanted["cpu"]
                and where["pods"] >= 1 and (not wanted["listed"] or node in self.allowed))

    def faults(self, places):
        """What an assignment [(node, gpus)] breaks, as sentences."""
        out, used = [], defaultdict(lambda: [0, 0, 0])
        for p, (n, gpus) in enumerate(places):
            wanted = self.pods[p]
            if bin(gpus).count("1") != wanted["gpus"]:
                out.append(f"pod {p} has the wrong number of GPUs")
            if not self.may_hold(p, n):
                out.append(f"pod {p} may not stand on node {n}")
            if gpus & ~self.nodes[n]["mask"] or gpus & used[n][0]:
                out.append(f"pod {p} takes a GPU that is not free")
            used[n][0] |= gpus
            used[n][1] += wanted["cpu"]
            used[n][2] += 1
        out += [f"node {n} has not the room" for n, (_, cpu, pods) in used.items()
                if cpu > self.nodes[n]["cpu"] or pods > self.nodes[n]["pods"]]
        for level, pods in self.together():
            cells = {self.cell(level, places[p][0]) for p in pods}
            if None in cells or len(cells) > 1:
                out.append(f"pods {pods} are not in one {level}")
        return out

    def spread(self, node_of_pod):
        """By axis: the most units, and the most NVLink domains, that a group touches."""
        return {axis: (max(len({self.nodes[node_of_pod[p]]["unit"] for p in pods}) for pods in self.groups(axis)),
                       max(len({self.nodes[node_of_pod[p]]["place"] for p in pods}) for pods in self.groups(axis)))
                for axis in self.axes()}


def weighed(spread):
    return sum(WEIGHTS[axis] * (units + places) for axis, (units, places) in spread.items())
