"""The exact answer to an instance by CP-SAT: whether any assignment keeps the hard constraints, and the least spread."""

import random
from collections import defaultdict

from ortools.sat.python import cp_model

from instances import WEIGHTS, weighed


class Bin:
    """Nodes that are one and the same to the solver: `room` pods of the one kind there is, or what one node holds."""

    def __init__(self, nodes, unit, place, room=None):
        self.nodes, self.unit, self.place, self.room = nodes, unit, place, room


def room_for(instance, node):
    """How many pods of the gang's one kind a node holds."""
    where, pod = instance.nodes[node], instance.pods[0]
    if not instance.may_hold(0, node):
        return 0
    return min(where["free"] // pod["gpus"], where["pods"], where["cpu"] // pod["cpu"] if pod["cpu"] else where["pods"])


def bins_of(instance):
    """Pods that are all alike are counted: per NVLink domain, or per unit where each has a domain of its own."""
    alike = all(pod == instance.pods[0] for pod in instance.pods) and instance.pods[0]["gpus"] > 0
    by_node = any(level == "node" and len(pods) > 1 for level, pods in instance.together())
    nodes = range(len(instance.nodes))
    if not alike or by_node:
        return [Bin([n], instance.nodes[n]["unit"], instance.nodes[n]["place"]) for n in nodes
                if any(instance.may_hold(p, n) for p in range(len(instance.pods)))]
    places = defaultdict(list)
    for n in nodes:
        if room_for(instance, n) > 0:
            places[instance.nodes[n]["unit"], instance.nodes[n]["place"]].append(n)
    rooms = {key: sum(room_for(instance, n) for n in members) for key, members in places.items()}
    nvlink = any(level == "nvlink" and len(pods) > 1 for level, pods in instance.together())
    if all(room == 1 for room in rooms.values()) and not nvlink:
        units = defaultdict(list)
        for (unit, _), members in places.items():
            units[unit] += members
        return [Bin(members, unit, None, len(members)) for unit, members in sorted(units.items())]
    return [Bin(members, *key, rooms[key]) for key, members in sorted(places.items())]


class Exact:
    def __init__(self, instance):
        self.instance, self.model, self.bins = instance, cp_model.CpModel(), bins_of(instance)
        self.pods = range(len(instance.pods))
        self.at = [[self.model.new_bool_var("") if self.may(p, b) else None for b in self.bins] for p in self.pods]
        for row in self.at:
            self.model.add(sum(x for x in row if x is not None) == 1)
        self.rooms()
        for level, pods in instance.together():
            if len(pods) > 1 or level == "nvlink":
                self.share(level, pods)
        self.order_equal_bins()

    def may(self, pod, chosen):
        return chosen.room is not None or self.instance.may_hold(pod, chosen.nodes[0])

    def rooms(self):
        for b, chosen in enumerate(self.bins):
            here = [(self.at[p][b], self.instance.pods[p]) for p in self.pods if self.at[p][b] is not None]
            if chosen.room is not None:
                self.model.add(sum(x for x, _ in here) <= chosen.room)
                continue
            where = self.instance.nodes[chosen.nodes[0]]
            self.model.add(sum(pod["gpus"] * x for x, pod in here) <= where["free"])
            self.model.add(sum(pod["cpu"] * x for x, pod in here) <= where["cpu"])
            self.model.add(sum(x for x, _ in here) <= where["pods"])

    def inside(self, pod, key):
        """By cell: a 0/1 expression that says whether the pod stands in it."""
        cells = defaultdict(list)
        for b, chosen in enumerate(self.bins):
            if self.at[pod][b] is not None:
                cells[key(chosen)].append(self.at[pod][b])
        return {cell: sum(vars) if len(vars) > 1 else vars[0] for cell, vars in cells.items()}

    def share(self, level, pods):
        def key(chosen):
            return self.instance.cell(level, chosen.nodes[0])
        first = self.inside(pods[0], key)
        if None in first:
            self.model.add(first[None] == 0)
        for pod in pods[1:]:
            other = self.inside(pod, key)
            for cell in set(first) | set(other):
                self.model.add(first.get(cell, 0) == other.get(cell, 0) if cell is not None else other.get(cell, 0) == 0)

    def order_equal_bins(self):
        """Of bins that nothing tells apart the first holds the most GPUs."""
        alike = defaultdict(list)
        size = defaultdict(int)
        for chosen in self.bins:
            size[chosen.place] += 1
        for b, chosen in enumerate(self.bins):
            may = tuple(x is not None for x in (self.at[p][b] for p in self.pods))
            where = self.instance.nodes[chosen.nodes[0]]
            alone = chosen.place is not None and size[chosen.place] == 1
            room = chosen.room if chosen.room is not None else (where["free"], where["cpu"], where["pods"])
            known = where["domain"] >= 0
            spine_or_unit = chosen.unit
            alike[spine_or_unit, "alone" if alone else chosen.place, room, known, may].append(b)
        for equal in alike.values():
            for a, b in zip(equal, equal[1:]):
                self.model.add(self.load(a) >= self.load(b))

    def load(self, b):
        return sum(max(1, self.instance.pods[p]["gpus"]) * self.at[p][b] for p in self.pods if self.at[p][b] is not None)

    def most_touched(self, axis, key):
        """The most cells that one group of the axis touches, to be minimised."""
        cells = {key(chosen) for chosen in self.bins}
        groups = self.instance.groups(axis)
        most = self.model.new_int_var(1, max(1, min(len(cells), max(len(pods) for pods in groups))), "")
        self.model.add(most >= max(self.fewest(pods, key) for pods in groups))
        inside = {p: self.inside(p, key) for pods in groups if len(pods) > 1 for p in pods}
        rooms = self.gpus_of(key)
        for pods in groups:
            if len(pods) < 2:
                continue
            touched = {}
            for cell in cells:
                here = [inside[p][cell] for p in pods if cell in inside[p]]
                if here:
                    touched[cell] = self.model.new_bool_var("")
                    for x in here:
                        self.model.add(x <= touched[cell])
            self.model.add(sum(touched.values()) <= most)
            # Implied, and what proofs go by: the cells that a group touches have room for it.
            need = sum(self.instance.pods[p]["gpus"] for p in pods)
            self.model.add(sum(min(need, rooms[cell]) * x for cell, x in touched.items()) >= need)
        return most

    def gpus_of(self, key):
        """By cell: the GPUs that pods of this gang could take of it."""
        rooms = defaultdict(int)
        one = self.instance.pods[0]["gpus"]
        for chosen in self.bins:
            rooms[key(chosen)] += chosen.room * one if chosen.room is not None else self.instance.nodes[chosen.nodes[0]]["free"]
        return rooms

    def fewest(self, pods, key):
        """A bound: the largest cells that could hold a group if it were alone."""
        need, count = sum(self.instance.pods[p]["gpus"] for p in pods), 0
        for room in sorted(self.gpus_of(key).values(), reverse=True):
            if need <= 0:
                break
            need -= room
            count += 1
        return max(1, count)

    def minimise_spread(self):
        whole = all(chosen.place is None for chosen in self.bins)
        terms = []
        for axis in self.instance.axes():
            terms.append(WEIGHTS[axis] * self.most_touched(axis, lambda chosen: chosen.unit))
            if whole:
                terms.append(WEIGHTS[axis] * max(len(pods) for pods in self.instance.groups(axis)))
            else:
                terms.append(WEIGHTS[axis] * self.most_touched(axis, lambda chosen: chosen.place))
        if terms:
            self.model.minimize(sum(terms))
        self.objective = sum(terms)

    def bin_of_node(self):
        return {n: b for b, chosen in enumerate(self.bins) for n in chosen.nodes}

    def start_from(self, node_of_pod):
        bins = self.bin_of_node()
        for p in self.pods:
            for b, x in enumerate(self.at[p]):
                if x is not None:
                    self.model.add_hint(x, bins[node_of_pod[p]] == b)
        self.model.add(self.objective <= weighed(self.instance.spread(node_of_pod)))

    def spread_at_most(self, most):
        self.minimise_spread()
        self.model.add(self.objective <= most)

    def prefer_by_lot(self, lot):
        """Any answer will do: by lot, so that several are not much the same."""
        draw = random.Random(lot)
        self.model.clear_objective()
        self.model.minimize(sum(draw.randrange(10) * x for row in self.at for x in row if x is not None))

    def solve(self, seconds):
        """(status, nodes by pod): "optimal" also where there was nothing to minimise."""
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_deterministic_time = seconds  # about seconds, and the same answer on a busy machine
        solver.parameters.random_seed = 1
        status = solver.solve(self.model)
        if status in (cp_model.INFEASIBLE, cp_model.MODEL_INVALID):
            return ("infeasible" if status == cp_model.INFEASIBLE else "invalid"), None
        if status == cp_model.UNKNOWN:
            return "unproved", None
        left = [{n: room_for(self.instance, n) for n in chosen.nodes} if chosen.room is not None else None
                for chosen in self.bins]
        nodes = []
        for p in self.pods:
            b = next(b for b, x in enumerate(self.at[p]) if x is not None and solver.value(x))
            if left[b] is None:
                nodes.append(self.bins[b].nodes[0])
                continue
            n = next(n for n, room in left[b].items() if room > 0)
            left[b][n] -= 1
            nodes.append(n)
        return ("optimal" if status == cp_model.OPTIMAL else "unproved"), nodes
