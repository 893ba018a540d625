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
{{- include "heddle.word" (list (printf "networkPolicy.apiServer.cidrs[%d]" $index) $one "^[0-9A-Fa-f.:]+/[0-9]{1,3}$" "an address with the length of its prefix: 10.96.0.1/32 for one address, 10.0.0.0/8 for a network") }}
{{- end }}
{{- include "heddle.word" (list "monitoring.podMonitors.interval" $values.monitoring.podMonitors.interval "^([0-9]+(ms|s|m|h))+$" "a time with its unit and no space, such as 30s or 1m") }}
{{- with $values.monitoring.rules.docs }}
{{- include "heddle.word" (list "monitoring.rules.docs" . "^https?://[^ ]+$" "the URL under which your people read docs/, such as https://git.example/heddle/blob/main/docs, or nothing") }}
{{- end }}
{{- range $who := list "control" "agents" }}
{{- with get $values.priorityClasses $who }}
{{- include "heddle.word" (list (printf "priorityClasses.%s" $who) . "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" "the name of a PriorityClass (kubectl get priorityclasses), or \"\" for none") }}
{{- end }}
{{- end }}
{{- range $at, $folder := dict "agent.driver.root" $values.agent.driver.root "agent.kubeletRoot" $values.agent.kubeletRoot }}
{{- include "heddle.word" (list $at $folder "^/$|^(/[-A-Za-z0-9._]+)+$" "a folder of the node from / on, without a / at its end") }}
{{- end }}
{{- range $at, $folder := dict "agent.devices.stateDir" $values.agent.devices.stateDir "agent.lldp.socket" $values.agent.lldp.socket }}
{{- include "heddle.word" (list $at $folder "^(/[-A-Za-z0-9._]+)+$" "a path of the node from / on, such as /var/lib/heddle or /run/lldpd.socket, without a / at its end") }}
{{- end }}
{{- with $values.agent.labelsFile }}
{{- include "heddle.word" (list "agent.labelsFile" . "^(/[-A-Za-z0-9._]+){2,}$" "a path of the node from / on, in a folder, such as /etc/heddle/labels, or \"\" for none") }}
{{- end }}
{{- range $index, $one := $values.agent.uncabled }}
{{- include "heddle.word" (list (printf "agent.uncabled[%d]" $index) $one "^[]A-Za-z0-9_.*?!^[-]+(:[]0-9*?!^[-]+)?$" "DEVICE or DEVICE:PORT, with the shell's *, ? and [...], such as mlx5_1 or mlx5_[45]:2") }}
{{- if regexMatch "^[*]+(:[*]+)?$" $one }}
{{- fail (printf "agent.uncabled[%d] is %s, which is every port of every node, and no alarm would be left of any: name the devices" $index (toJson $one)) }}
{{- end }}
{{- end }}
{{- range $index, $one := $values.agent.storage }}
{{- include "heddle.word" (list (printf "agent.storage[%d]" $index) $one "^[]A-Za-z0-9_.*?!^[-]+$" "the name of an RDMA device, with the shell's *, ? and [...], such as mlx5_2 or mlx5_[67]") }}
{{- if regexMatch "^[*]+$" $one }}
{{- fail (printf "agent.storage[%d] is %s, which is every NIC of every node, and no rail would be left of any: name the devices" $index (toJson $one)) }}
{{- end }}
{{- end }}
{{- range $plugin, $one := $values.otherPlugins }}
{{- include "heddle.word" (list (printf "otherPlugins.%s.image" $plugin) $one.image "^[^ ]*$" "an image with its registry and tag, without a space") }}
{{- end }}
{{- $host := "^([[][0-9A-Fa-f:]+[]]|[-A-Za-z0-9._]+)(:[0-9]+)?(/[-a-z0-9._/]*)?$" }}
{{- range $at, $registry := dict "image.registry" $values.image.registry "scheduler.image.registry" $values.scheduler.image.registry }}
{{- with $registry }}
{{- include "heddle.word" (list $at . $host "a host and a path as in an image's name, without https://, such as registry.example/ai") }}
{{- end }}
{{- end }}
{{- end }}

{{- define "heddle.word" -}}
{{- $path := index . 0 }}{{ $value := index . 1 }}
{{- if not (regexMatch (index . 2) (toString $value)) }}
{{- fail (printf "%s is %s: write %s" $path (toJson $value) (index . 3)) }}
{{- end }}
{{- end }}

{{- /* What the API server would say of a Deployment only when its pods are missing already. */ -}}
{{- define "heddle.checkQuantities" -}}
{{- range $component := list "operator" "scheduler" "extender" "agent" "cli" }}
{{- range $kind := list "requests" "limits" }}
{{- range $name, $amount := get (get (get $.Values $component) "resources" | default dict) $kind | default dict }}
{{- if not (regexMatch "^([0-9]+[.]?[0-9]*|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$" (toString $amount)) }}
{{- fail (printf "%s.resources.%s.%s is %s, which is no quantity: write 128Mi (1024 times 1024) or 128M (a million) for bytes, 500m or 0.5 for half a CPU" $component $kind $name (toJson $amount)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Two servers of one pod on one port: the second would never start. */ -}}
{{- define "heddle.checkPorts" -}}
{{- $values := .Values }}
{{- $port := $values.extender.port | int }}
{{- range $other, $taken := dict "extender.metricsPort" $values.extender.metricsPort "kube-scheduler beside it" 10259 }}
{{- if eq $port (int $taken) }}
{{- fail (printf "extender.port is %d, which is that of %s, too: choose another, such as 8010" $port $other) }}
{{- end }}
{{- end }}
{{- if eq ($values.extender.metricsPort | int) 10259 }}
{{- fail "extender.metricsPort is 10259, which is that of kube-scheduler beside it, too: choose another, such as 8011" }}
{{- end }}
{{- if and $values.operator.page.enabled (eq ($values.operator.port | int) ($values.operator.page.port | int)) }}
{{- fail (printf "operator.page.port is %d, which is operator.port, too: choose another, such as 8090" (int $values.operator.port)) }}
{{- end }}
{{- end }}
