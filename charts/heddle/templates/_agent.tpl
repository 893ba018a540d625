{{- /* Device nodes of the host that nobody hands in are open to a privileged container alone. */ -}}
{{- define "heddle.agentPrivileged" -}}
{{- if or (eq .Values.agent.access.driver "host") (eq .Values.agent.access.infiniband "host") }}true{{ end }}
{{- end }}

{{- /* Values that contradict each other, as a sentence that says which to change. */ -}}
{{- define "heddle.checkAgent" -}}
{{- $agent := .Values.agent }}
{{- if and (eq $agent.access.driver "runtimeClass") (not $agent.nodeSelector) }}
{{- fail (printf "agent.access.driver is runtimeClass, and a node without the RuntimeClass %s cannot start the agent: name the nodes that have it in agent.nodeSelector (such as nvidia.com/gpu.present: \"true\"), or use host" $agent.driver.runtimeClass) }}
{{- end }}
{{- if and (eq $agent.access.infiniband "resource") (not $agent.infiniband.resource) }}
{{- fail "agent.access.infiniband is resource: name it in agent.infiniband.resource, as the device plugin calls it (such as rdma/hca_shared_devices_a), or use host" }}
{{- end }}
{{- if and (ne $agent.access.infiniband "resource") $agent.infiniband.resource }}
{{- fail (printf "agent.infiniband.resource is set, and agent.access.infiniband is %s: set that to resource, or leave the resource empty" $agent.access.infiniband) }}
{{- end }}
{{- $folder := dir $agent.lldp.socket }}
{{- if and (eq $agent.access.lldp "host") (not (include "heddle.agentPrivileged" .)) (has $folder (list "/" "/run" "/var" "/var/run" "/tmp")) }}
{{- fail (printf "agent.access.lldp is host, and %s, which is mounted for %s, has sockets of root in it (the container runtime's), so the agent would not be unprivileged: use sidecar, or start lldpd with -u in a folder of its own and name that in agent.lldp.socket" $folder $agent.lldp.socket) }}
{{- end }}
{{- with $agent.labelsFile }}
{{- if and (not (include "heddle.agentPrivileged" $)) (has (dir .) (list "/run" "/var" "/var/run" "/tmp")) }}
{{- fail (printf "agent.labelsFile is %s, and %s, which is mounted for it, has sockets of root in it (the container runtime's), so the agent would not be unprivileged: keep the file in a folder of its own, such as /etc/heddle" . (dir .)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Of the agent's container. */ -}}
{{- define "heddle.agentSecurity" -}}
{{- if include "heddle.agentPrivileged" . -}}
privileged: true
readOnlyRootFilesystem: true
{{- else -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- $add := list }}
{{- if ne .Values.agent.access.lldp "none" }}{{ $add = append $add "DAC_OVERRIDE" }}{{ end }}
{{- if .Values.agent.lossless.enabled }}{{ $add = append $add "NET_ADMIN" }}{{ end }}
{{- with $add }}
  # DAC_OVERRIDE: lldpd's socket belongs to lldpd's own user and group. NET_ADMIN: to set DCB, MTU and the watchdog.
  add: [{{ join ", " . }}]
{{- end }}
{{- if .Values.agent.lossless.enabled }}
# The runtime's own profile denies writes below /sys.
appArmorProfile: {type: Unconfined}
{{- end }}
{{- end }}
{{- end }}

{{- /* Where lldpd's socket is in the agent's container. */ -}}
{{- define "heddle.lldpSocket" -}}
/run/heddle-lldpd/{{ if eq .Values.agent.access.lldp "sidecar" }}lldpd.socket{{ else }}{{ base .Values.agent.lldp.socket }}{{ end }}
{{- end }}

{{- /* With the resource that brings /dev/infiniband, where one does. */ -}}
{{- define "heddle.agentResources" -}}
{{- $resources := deepCopy (.Values.agent.resources | default dict) }}
{{- if eq .Values.agent.access.infiniband "resource" }}
{{- $_ := set $resources "limits" (merge (dict .Values.agent.infiniband.resource "1") ($resources.limits | default dict)) }}
{{- end }}
{{- toYaml $resources }}
{{- end }}
