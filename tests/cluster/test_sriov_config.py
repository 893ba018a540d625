"""What is held against the configuration for the SR-IOV plugin (sriov_config.py) can tell a good one from a bad one. No
control plane is needed."""

import json
import unittest

import sriov_config

GOOD = {"resourcePrefix": "nvidia.com", "resourceName": "rail-0", "selectors": [{"pfNames": ["ens1f0np0"], "isRdma": True}]}
# Each of an entry that is otherwise good.
BAD = (
    ({"resourceName": "rail.0"}, "invalid characters"),
    ({"resourceName": ""}, "invalid characters"),
    ({"resourceName": "rail-0\n"}, "invalid characters"),
    ({"resourceName": 7}, "resourceName is no text"),
    ({"resourceName": "r" * 60}, "too long a path"),
    ({"resourcePrefix": None}, "resourcePrefix is no text"),
    ({"rdmaHcaMax": 63}, "unknown field 'rdmaHcaMax'"),
    ({"ResourceName": "rail-0"}, "unknown field 'ResourceName'"),
    ({"deviceType": "infiniband"}, "none of netDevice, accelerator, auxNetDevice"),
    ({"excludeTopology": "true"}, "neither true nor false"),
    ({"additionalInfo": {"*": "token"}}, "additionalInfo.* is no object"),
    ({"additionalInfo": {"*": {"token": 1}}}, "additionalInfo.*.token is no text"),
    ({"selectors": []}, "selectors is empty"),
    ({"selectors": None}, "selectors is null"),
    ({"selectors": ["ens1f0np0"]}, "selectors[0] is no object"),
    ({"selectors": {"ifNames": ["ens1f0np0"]}}, "unknown field 'ifNames'"),
    ({"selectors": [{"pfNames": ["eth0"]}, {"pfName": ["eth1"]}]}, "selectors[1]: unknown field 'pfName'"),
    ({"selectors": {"pfNames": "ens1f0np0"}}, "pfNames is no list"),
    ({"selectors": {"pfNames": []}}, "pfNames is no list"),
    ({"selectors": {"pfNames": ["an-interface-of-17"]}}, "no device is called"),
    ({"selectors": {"pfNames": ["eth0#0-"]}}, "no device is called"),
    ({"selectors": {"pfNames": ["eth0"], "isRdma": "true"}}, "neither true nor false"),
    ({"selectors": {"pciAddresses": ["5e:00.0"]}}, "no device is called"),
    ({"selectors": {"pciAddresses": ["0000:5E:00.0"]}}, "no device is called"),
    ({"selectors": {"vendors": [15]}}, "an entry of resourceList[0].selectors[0].vendors is no text"),
    ({"selectors": {"vdpaType": "nvme"}}, "none of virtio, vhost"),
    ({"selectors": {"isRdma": True, "vdpaType": "vhost"}}, "exclude each other"),
    ({"deviceType": "accelerator"}, "unknown field 'pfNames'"),
    ({"deviceType": "auxNetDevice"}, "auxTypes has to be sf"),
    ({"deviceType": "auxNetDevice", "selectors": {"auxTypes": ["sf", "eth"]}}, "auxTypes has to be sf"),
)


def listed(*entries):
    return json.dumps({"resourceList": entries})


class SriovConfigTest(unittest.TestCase):

    def refusal(self, config):
        with self.assertRaises(sriov_config.Refused) as refused:
            sriov_config.read(config)
        return str(refused.exception)

    def test_what_is_good_is_read_as_it_is_meant(self):
        bare = {"resourceName": "all_of-them", "selectors": {}}
        functions = {"resourceName": "vf", "excludeTopology": True, "additionalInfo": {"*": {"token": "a"}}, "selectors": [
            {"vendors": ["15b3"], "drivers": ["mlx5_core"], "pfNames": ["eth0#0-3,5", "eth1"], "isRdma": False,
             "vdpaType": "vhost"},
            {"pciAddresses": ["0000:5e:00.2", "10000:e1:00.0"], "rootDevices": ["0000:86:00.0#4"], "needVhostNet": True}]}
        scalable = {"resourceName": "sf", "deviceType": "auxNetDevice", "selectors": {"auxTypes": ["sf"]}}
        read = sriov_config.read(listed(GOOD, bare, functions, scalable))
        self.assertEqual([(one["name"], one["deviceType"]) for one in read], [
            ("nvidia.com/rail-0", "netDevice"), ("intel.com/all_of-them", "netDevice"), ("intel.com/vf", "netDevice"),
            ("intel.com/sf", "auxNetDevice")])
        self.assertEqual([one["selectors"] for one in read], [
            GOOD["selectors"], [{}], functions["selectors"], [{"auxTypes": ["sf"]}]])

    def test_each_fault_of_an_entry_is_named(self):
        for spoil, why in BAD:
            with self.subTest(spoil):
                self.assertIn(why, self.refusal(listed(GOOD | spoil)))

    def test_so_is_what_an_entry_lacks(self):
        for lacks, why in (("resourceName", "invalid characters"), ("selectors", "has no selectors")):
            with self.subTest(lacks):
                self.assertIn(why, self.refusal(listed({key: value for key, value in GOOD.items() if key != lacks})))

    def test_names_are_given_once(self):
        self.assertIn("'nvidia.com/rail-0' already exists", self.refusal(listed(GOOD, GOOD)))
        self.assertEqual(len(sriov_config.read(listed(GOOD, GOOD | {"resourcePrefix": "other.dev"}))), 2)
        # Without a prefix it has the plugin's own.
        bare = {key: value for key, value in GOOD.items() if key != "resourcePrefix"}
        self.assertIn("already exists", self.refusal(listed(bare, GOOD | {"resourcePrefix": sriov_config.PREFIX})))

    def test_the_longest_name_that_a_policy_may_have_has_a_socket(self):
        """crds/rdmadevicepolicies.yaml takes 68 characters, and not one more."""
        prefix, name = "nvidia.com", "r" * (68 - len("nvidia.com/"))
        self.assertEqual(len(sriov_config.read(listed(GOOD | {"resourcePrefix": prefix, "resourceName": name}))), 1)
        self.assertIn("too long a path", self.refusal(listed(GOOD | {"resourcePrefix": prefix, "resourceName": name + "r"})))

    def test_a_file_that_is_none_of_it(self):
        entry = json.dumps(GOOD)
        for config, why in (("", "no JSON"), ("[]", "the file is no object"), ("{}", "no resource"), (listed(), "no resource"),
                            ('{"resourceList": null}', "is null"), ('{"configList": [%s]}' % entry, "unknown field 'configList'"),
                            (listed(GOOD) + "}", "no JSON"), ('{"resourceList": [%s], "resourceList": []}' % entry, "stands twice"),
                            (listed("rail-0"), "resourceList[0] is no object")):
            with self.subTest(config):
                self.assertIn(why, self.refusal(config))
