{{- /* Values whose form the schema could refuse by a pattern only, which nobody reads: refused here, with what to write. */ -}}
{{- define "heddle.checkWords" -}}
{{- $values := .Values }}
{{- $resource := "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$" }}
{{- /* kGpuResources in crds/gpu_indexes.h; of another name the extender finds no GPU in a pod (NoGpus), and it would wait for
       ever. heddle.dev/fabric is put into the scheduler's configuration anyhow, and kube-scheduler starts with none twice. */ -}}
{{- range $index, $one := $values.managedResources }}
{{- if not (has $one (list "amd.com/gpu" "heddle.dev/gpu" "nvidia.com/gpu")) }}
{{- fail (printf "managedResources[%d] is %s: write nvidia.com/gpu, amd.com/gpu or heddle.dev/gpu, as it stands in a container's limits; Heddle takes nothing else for a GPU, and pods that ask for it would wait for ever (heddle.dev/fabric is managed without being named)" $index (toJson $one)) }}
{{- end }}
{{- end }}
{{- with $values.agent.infiniband.resource }}
{{- include "heddle.word" (list "agent.infiniband.resource" . $resource "a resource as the device plugin calls it, such as rdma/hca_shared_devices_a") }}
{{- end }}
{{- range $index, $one := $values.networkPolicy.apiServer.cidrs }}
{{- include "heddle.cidr" (list (printf "networkPolicy.apiServer.cidrs[%d]" $index) $one) }}
{{- end }}
{{- range $index, $one := $values.networkPolicy.metricsFrom }}
{{- with $one.ipBlock }}
{{- $at := printf "networkPolicy.metricsFrom[%d]" $index }}
{{- include "heddle.cidr" (list (printf "%s.ipBlock.cidr" $at) .cidr) }}
{{- range $number, $not := .except }}
{{- include "heddle.cidr" (list (printf "%s.ipBlock.except[%d]" $at $number) $not) }}
{{- end }}
{{- if or (hasKey $one "podSelector") (hasKey $one "namespaceSelector") }}
{{- fail (printf "%s has an ipBlock and a selector of pods, which a NetworkPolicy takes in two entries only: write each as its own" $at) }}
{{- end }}
{{- end }}
{{- end }}
{{- $interval := "a time with its unit and no space, longest unit first and over 0, such as 30s or 1m30s" }}
{{- include "heddle.word" (list "monitoring.podMonitors.interval" $values.monitoring.podMonitors.interval "^([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$" $interval) }}
{{- include "heddle.word" (list "monitoring.podMonitors.interval" $values.monitoring.podMonitors.interval "[1-9]" $interval) }}
{{- with $values.monitoring.rules.docs }}
{{- include "heddle.word" (list "monitoring.rules.docs" . "^https?://[^ ]+$" "the URL under which your people read docs/, such as https://git.example/heddle/blob/main/docs, or nothing") }}
{{- end }}
{{- range $who := list "control" "agents" }}
{{- with get $values.priorityClasses $who }}
{{- include "heddle.word" (list (printf "priorityClasses.%s" $who) . "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" "the name of a PriorityClass (kubectl get priorityclasses), or \"\" for none") }}
{{- end }}
{{- end }}
{{- /* No part of a path is . or ..: what is mounted would be another folder than the one that is read here. */ -}}
{{- $part := "/[.]*[-A-Za-z0-9_][-A-Za-z0-9._]*" }}
{{- range $at, $folder := dict "agent.driver.root" $values.agent.driver.root "agent.kubeletRoot" $values.agent.kubeletRoot }}
{{- include "heddle.word" (list $at $folder (printf "^/$|^(%s)+$" $part) "a folder of the node from / on, without a / at its end") }}
{{- end }}
{{- include "heddle.word" (list "agent.devices.stateDir" $values.agent.devices.stateDir (printf "^(%s)+$" $part) "a path of the node from / on, such as /var/lib/heddle, without a / at its end") }}
{{- include "heddle.word" (list "agent.lldp.socket" $values.agent.lldp.socket (printf "^(%s){2,}$" $part) "a path of the node from / on, in a folder, which is mounted, such as /run/lldpd.socket") }}
{{- with $values.agent.labelsFile }}
{{- include "heddle.word" (list "agent.labelsFile" . (printf "^(%s){2,}$" $part) "a path of the node from / on, in a folder, such as /etc/heddle/labels, or \"\" for none") }}
{{- end }}
{{- /* As nodeagent/nic/name_globs.cc reads them: an agent that is told another one does not start; nor with a range that runs backwards, [5-4]. */ -}}
{{- $bracket := "[[][!^]?[-A-Za-z0-9_.]+[]]" }}
{{- $device := printf "([-A-Za-z0-9_.*?]|%s)+" $bracket }}
{{- range $index, $one := $values.agent.uncabled }}
{{- include "heddle.word" (list (printf "agent.uncabled[%d]" $index) $one (printf "^%s(:([0-9*?]|%s)+)?$" $device $bracket) "DEVICE or DEVICE:PORT, with the shell's *, ? and [...], such as mlx5_1 or mlx5_[45]:2") }}
{{- if regexMatch "^[*]+(:[*]+)?$" $one }}
{{- fail (printf "agent.uncabled[%d] is %s, which is every port of every node, and no alarm would be left of any: name the devices" $index (toJson $one)) }}
{{- end }}
{{- end }}
{{- range $index, $one := $values.agent.storage }}
{{- include "heddle.word" (list (printf "agent.storage[%d]" $index) $one (printf "^%s$" $device) "the name of an RDMA device, with the shell's *, ? and [...], such as mlx5_2 or mlx5_[67]") }}
{{- if regexMatch "^[*]+$" $one }}
{{- fail (printf "agent.storage[%d] is %s, which is every NIC of every node, and no rail would be left of any: name the devices" $index (toJson $one)) }}
{{- end }}
{{- end }}
{{- range $plugin, $one := $values.otherPlugins }}
{{- include "heddle.word" (list (printf "otherPlugins.%s.image" $plugin) $one.image "^[^ ]*$" "an image with its registry and tag, without a space") }}
{{- end }}
{{- $tag := "^([A-Za-z0-9_][-A-Za-z0-9_.]{0,127}(@sha256:[0-9a-f]{64})?)?$" }}
{{- range $at, $image := dict "image" $values.image "scheduler.image" $values.scheduler.image }}
{{- include "heddle.word" (list (printf "%s.repository" $at) $image.repository "^([-A-Za-z0-9.]+(:[0-9]+)?/)?[a-z0-9][-a-z0-9._]*(/[a-z0-9][-a-z0-9._]*)*(@sha256)?$" "an image's name in small letters, without tag and space, such as heddle or ai/heddle") }}
{{- include "heddle.word" (list (printf "%s.tag" $at) $image.tag $tag "a tag as the registry has it, such as v1.36.3 or 0.1.0, or \"\" for the one that fits") }}
{{- end }}
{{- $name := "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" }}
{{- range $at, $secrets := dict "image.pullSecrets" $values.image.pullSecrets "operator.switches.secrets" $values.operator.switches.secrets }}
{{- range $index, $one := $secrets }}
{{- include "heddle.word" (list (printf "%s[%d]" $at $index) $one $name "the name of a Secret in Heddle's namespace (kubectl get secrets --namespace heddle-system)") }}
{{- end }}
{{- end }}
{{- include "heddle.word" (list "agent.driver.runtimeClass" $values.agent.driver.runtimeClass $name "the name of a RuntimeClass (kubectl get runtimeclasses), such as nvidia") }}
{{- $key := "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$" }}
{{- range $at, $words := dict "podLabels" $values.podLabels "podAnnotations" $values.podAnnotations }}
{{- range $name, $value := $words }}
{{- include "heddle.word" (list (printf "a key of %s" $at) $name $key "it as Kubernetes has keys, such as team or example.com/team") }}
{{- if or (has $name (list "app.kubernetes.io/name" "app.kubernetes.io/component")) (regexMatch "^(heddle[.]dev|helm[.]sh)/" $name) }}
{{- fail (printf "%s has %s, which is the chart's own on its pods: write it under another key" $at $name) }}
{{- end }}
{{- if eq $at "podLabels" }}
{{- include "heddle.word" (list (printf "podLabels.%s" $name) $value "^(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?$" "up to 63 letters, digits, -, _ and ., as a label takes them") }}
{{- end }}
{{- end }}
{{- end }}
{{- /* One key twice is an object that the API server does not read. */ -}}
{{- $ours := include "heddle.labels" . | fromYaml }}
{{- $of := $values.monitoring }}
{{- range $at, $words := dict "podMonitors" $of.podMonitors.labels "rules" $of.rules.labels "dashboard" $of.dashboard.labels }}
{{- range $name, $value := $words }}
{{- if hasKey $ours $name }}
{{- fail (printf "monitoring.%s.labels has %s, which is the chart's own on its objects: write it under another key, or select by it as it is, %s" $at $name (get $ours $name)) }}
{{- end }}
{{- end }}
{{- end }}
{{- $host := "^([[][0-9A-Fa-f:]+[]]|[-A-Za-z0-9._]+)(:[0-9]+)?(/[-a-z0-9._/]*)?$" }}
{{- range $at, $registry := dict "image.registry" $values.image.registry "scheduler.image.registry" $values.scheduler.image.registry }}
{{- with $registry }}
{{- include "heddle.word" (list $at . $host "a host and a path as in an image's name, without https://, such as registry.example/ai") }}
{{- end }}
{{- end }}
{{- end }}

{{- define "heddle.cidr" -}}
{{- $byte := "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])" }}
{{- $four := printf "^%s([.]%s){3}/(3[0-2]|[12]?[0-9])$" $byte $byte }}
{{- $six := "^[0-9A-Fa-f]*:[0-9A-Fa-f:.]*/(12[0-8]|1[01][0-9]|[1-9]?[0-9])$" }}
{{- include "heddle.word" (list (index . 0) (index . 1) (printf "%s|%s" $four $six) "an address with the length of its prefix: 10.96.0.1/32 for one address, 10.0.0.0/8 for a network") }}
{{- end }}

{{- define "heddle.word" -}}
{{- $path := index . 0 }}{{ $value := index . 1 }}
{{- if not (regexMatch (index . 2) (toString $value)) }}
{{- fail (printf "%s is %s: write %s" $path (toJson $value) (index . 3)) }}
{{- end }}
{{- end }}

{{- /* What the API server would say of a Deployment only when its pods are missing already. */ -}}
{{- define "heddle.checkQuantities" -}}
{{- $values := .Values }}
{{- range $component, $of := dict "operator" $values.operator "scheduler" $values.scheduler "extender" $values.extender "agent" $values.agent "agent.lldp" $values.agent.lldp "cli" $values.cli "helmTest" $values.helmTest "uninstall" $values.uninstall }}
{{- range $kind := list "requests" "limits" }}
{{- range $name, $amount := get (get $of "resources" | default dict) $kind | default dict }}
{{- if not (regexMatch "^([0-9]+[.]?[0-9]*|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$" (toString $amount)) }}
{{- fail (printf "%s.resources.%s.%s is %s, which is no quantity: write 128Mi (1024 times 1024) or 128M (a million) for bytes, 500m or 0.5 for half a CPU" $component $kind $name (toJson $amount)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* None of them is no way to stop Heddle: what holds pods back would stay in force. */ -}}
{{- define "heddle.checkReplicas" -}}
{{- if .Values.components.run }}
{{- if not (int .Values.operator.replicas) }}
{{- fail "operator.replicas is 0, so nobody would tell which fabric the nodes make, or which of them is ill: write 1 or more" }}
{{- end }}
{{- if not (int .Values.scheduler.replicas) }}
{{- if eq .Values.mode "place" }}
{{- fail "scheduler.replicas is 0, so pods with GPUs in Heddle's namespaces would wait for ever: write 1 or more, mode: observe to leave them alone, or `helm uninstall`, which hands back what waits" }}
{{- end }}
{{- fail "scheduler.replicas is 0, so nobody would observe, since the observer's replicas are these: write 1 or more" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Where a cluster was asked. Else its API server says what it does not serve: docs/installing.md#with-argo-cd-or-flux. */ -}}
{{- define "heddle.checkServed" -}}
{{- $served := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}
{{- if and (eq .Values.mutatingPolicies "always") (.Capabilities.APIVersions.Has "v1/Pod") (not $served) }}
{{- fail (printf "mutatingPolicies is always, and this cluster (%s) serves no MutatingAdmissionPolicy of admissionregistration.k8s.io/v1, which clusters do from Kubernetes 1.36 on: upgrade it, or write auto and prepare each Job: kubectl heddle prepare -f job.yaml | kubectl create -f -" .Capabilities.KubeVersion.Version) }}
{{- end }}
{{- end }}

{{- /* What is a link in a checkout is nothing, or a text, where links are left out: the chart would install without a CRD. */ -}}
{{- define "heddle.checkWhole" -}}
{{- if and .Values.crds.install (not (.Files.Glob "files/crds/*.yaml")) }}
{{- fail "this copy of the chart lacks its CRDs: files/crds is a link into Heddle's tree, which Git on Windows, a GitRepository of Flux and a copy of charts/heddle alone do not have. Take what `helm package charts/heddle` makes in a whole checkout on Linux or macOS, or write crds.install: false where the CRDs are in the cluster already" }}
{{- end }}
{{- end }}

{{- /* What an upgrade takes out of a release Helm deletes, and a CRD takes every object of its kind along. The annotation that
       keeps one counts as it stands in the cluster, whatever crds.keep says by now. */ -}}
{{- define "heddle.checkCrds" -}}
{{- if and .Release.IsUpgrade (not .Values.crds.install) }}
{{- $lost := list }}
{{- range $file, $_ := .Files.Glob "files/crds/*.yaml" }}
{{- $name := printf "%s.heddle.dev" (base $file | trimSuffix ".yaml") }}
{{- with lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name }}
{{- $notes := dig "metadata" "annotations" (dict) . }}
{{- if and (eq (get $notes "meta.helm.sh/release-name") $.Release.Name) (ne (get $notes "helm.sh/resource-policy") "keep") }}
{{- $lost = append $lost $name }}
{{- end }}
{{- end }}
{{- end }}
{{- with $lost }}
{{- fail (printf "crds.install is false, and this release made %s without crds.keep, so Helm would delete them, and with them every object of these kinds: first have them kept, by `helm upgrade %s ... --namespace %s --reset-then-reuse-values --set crds.install=true,crds.keep=true`, and then write crds.install: false" (join ", " .) $.Release.Name $.Release.Namespace) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Two servers of one pod on one port: the second would never start. */ -}}
{{- define "heddle.checkPorts" -}}
{{- $values := .Values }}
{{- $port := $values.extender.port | int }}{{ $metrics := $values.extender.metricsPort | int }}
{{- if eq $port $metrics }}
{{- fail (printf "extender.port and extender.metricsPort are both %d: write two, such as 8010 and 8011" $port) }}
{{- end }}
{{- if eq $port 10259 }}
{{- fail (printf "extender.port is 10259, which is that of kube-scheduler beside it, too: write another, such as %d" (ternary 8012 8010 (eq $metrics 8010))) }}
{{- end }}
{{- if eq $metrics 10259 }}
{{- fail (printf "extender.metricsPort is 10259, which is that of kube-scheduler beside it, too: write another, such as %d" (ternary 8012 8011 (eq $port 8011))) }}
{{- end }}
{{- if and $values.operator.page.enabled (eq ($values.operator.port | int) ($values.operator.page.port | int)) }}
{{- fail (printf "operator.port and operator.page.port are both %d: write two, such as 8081 and 8090" (int $values.operator.port)) }}
{{- end }}
{{- /* What it serves its API and its own health on by default: port and healthzPort of a KubeletConfiguration. */ -}}
{{- if has (int $values.agent.port) (list 10248 10250) }}
{{- fail (printf "agent.port is %d, which is the kubelet's own, and the agents are on their hosts' network: write another, such as 9559" (int $values.agent.port)) }}
{{- end }}
{{- end }}
