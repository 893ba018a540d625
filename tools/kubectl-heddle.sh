#!/bin/sh
# `kubectl heddle` where the program itself does not run (macOS, Windows with WSL or Git Bash): starts it in the cluster, in
# the pod of Deployment heddle-cli, which the chart makes with cli.enabled=true. Put this file into PATH as kubectl-heddle:
#
#   install -m 755 tools/kubectl-heddle.sh /usr/local/bin/kubectl-heddle
#
# It answers as the account heddle-cli, which only reads, whoever you are; you need the right to create pods/exec there.
# A FILE is handed in by standard input, one a call. Exit codes are the program's own. HEDDLE_NAMESPACE: heddle-system.
set -eu

namespace=${HEDDLE_NAMESPACE:-heddle-system}

say() { printf '%s\n' "$*" >&2; }
refuse() {
  say "Error: $1"
  exit 2
}

# Whether a word stands for a FILE to read: it is none behind an option that takes something else.
takes_file() {
  case $command in
    plan | bench | lint | check | prepare | switch | fabric | 'fabric design') ;;
    topology | cables | status | explain | observe) case $before,$word in --topology,* | *,--topology=*) ;; *) return 1 ;; esac ;;
    *) return 1 ;;
  esac
  case $word in --topology=*) return 0 ;; esac
  case $before in
    -f | -f?* | --filename | --topology | --taken | --results | --config | --hosts-on | --prices) ;;
    --infiniband | --where | --rules | --resolved | --problems | --csv | --nvlink-blocks | --what-if | --suggest | -*=*) ;;
    -?*) return 1 ;;
  esac
}

# kubectl's own words are kept for it, the others are the program's: "$@" is taken apart and put together again behind
# itself.
command='' cluster='' context='' input='' given_namespace='' given_topology='' before=''
count=$#
while [ "$count" -gt 0 ]; do
  word=$1
  shift
  count=$((count - 1))
  case $before in
    --kubeconfig) cluster=$word ;;
    --context) context=$word ;;
  esac
  case $word in
    --kubeconfig=*) cluster=${word#*=} ;;
    --context=*) context=${word#*=} ;;
    -n | -n?* | --namespace | --namespace=*) given_namespace=yes ;;
    --topology | --topology=*) given_topology=yes ;;
  esac
  case $before,$word in
    --kubeconfig,* | --context,* | *,--kubeconfig | *,--kubeconfig=* | *,--context | *,--context=*)
      before=$word
      continue
      ;;
    *,--as | *,--as=* | *,--as-group | *,--as-group=*)
      refuse "${word%%=*} asks with your own rights, and the pod answers as the account heddle-cli: run the program itself \
(docs/installing.md)"
      ;;
    -n,* | --namespace,* | -o,* | --output,* | --topology,* | --request-timeout,* | *,-*) ;;
    *)
      command=${command:-$word}
      case $command,$word in fabric,design) command='fabric design' ;; esac
      ;;
  esac
  # FILE, --option=FILE, NAME=FILE, KIND:FILE or -fFILE; of each, - is standard input.
  file='' given=''
  if [ "$word" != - ] && takes_file; then
    for part in "$word" "${word##*=}" "${word##*:}" "${word#-f}"; do
      [ "$part" != - ] || given=yes
      [ -n "$file" ] || [ ! -f "$part" ] || [ "$part" = - ] || file=$part
    done
  fi
  case $command,$before,$word in
    'fabric design',--topology,- | 'fabric design',*,--topology=-) given='' ;; # it writes there, and - is its standard output
    'fabric design',--topology,* | 'fabric design',*,--topology=*) refuse "the pod has no place for files: write --topology - > FILE" ;;
    *,-) given=yes ;;
  esac
  if [ -n "$given" ]; then
    [ -z "$input" ] || refuse "standard input is taken by $input already"
    input=-
  elif [ -n "$file" ]; then
    [ -z "$input" ] || refuse "one FILE at a time can be handed in to the pod, and $file is another: put them into one, \
or install the program itself (docs/installing.md)"
    input=$file
    word=${word%"$file"}-
  fi
  before=$word
  set -- "$@" "$word"
done

kube() {
  # As few words as were given: an empty one is a word, too.
  if [ -n "$cluster" ] && [ -n "$context" ]; then
    kubectl --kubeconfig "$cluster" --context "$context" "$@"
  elif [ -n "$cluster" ]; then
    kubectl --kubeconfig "$cluster" "$@"
  elif [ -n "$context" ]; then
    kubectl --context "$context" "$@"
  else
    kubectl "$@"
  fi
}

case $command in
  release) refuse "release changes jobs, which the account in the cluster may not: run it on a machine that the program \
runs on, with rights of your own, or let helm uninstall do it" ;;
  record)
    # There is no kubectl in the pod: the agent is asked from here.
    node='' scrub=''
    for word in "$@"; do
      case $word in
        record) ;;
        --scrub) scrub=--scrub ;;
        -*) refuse "record takes NODE and --scrub here" ;;
        *) node=$word ;;
      esac
    done
    [ -n "$node" ] || refuse "NODE is required: kubectl heddle record gpu-017 --scrub > gpu-017.tar"
    [ ! -t 1 ] || refuse "an archive is no text for a terminal: kubectl heddle record $node > $node.tar"
    pod=$(kube -n "$namespace" get pods -l app.kubernetes.io/name=heddle,app.kubernetes.io/component=nodeagent \
      --field-selector "spec.nodeName=$node,status.phase=Running" -o 'jsonpath={.items[0].metadata.name}' 2>/dev/null) || pod=''
    [ -n "$pod" ] || {
      say "Error: no agent of Heddle runs on $node; kubectl -n $namespace get pods -o wide says more"
      exit 1
    }
    places=$(kube -n "$namespace" get pod "$pod" -o 'jsonpath={range .spec.containers[?(@.name=="nodeagent")].command[*]}{@}{"\n"}{end}') ||
      places=''
    # What the agent is told of its machine, as cli/record.cc takes it: a word a line; a flag's value may be the next one.
    # Their * and [ are the agent's.
    set --
    is_value=''
    while IFS= read -r word; do
      case $is_value$word in
        yes* | --nvml=* | --lldpd-socket=* | --labels-file=* | --uncabled=* | --storage=*)
          set -- "$@" "$word"
          is_value=''
          ;;
        --nvml | --lldpd-socket | --labels-file | --uncabled | --storage)
          set -- "$@" "$word"
          is_value=yes
          ;;
      esac
    done <<WORDS
$places
WORDS
    export MSYS_NO_PATHCONV=1 # Git Bash: /run/… is a path in the pod
    kube -n "$namespace" exec "$pod" -c nodeagent -- heddle-nodeagent "--node=$node" "$@" record - ${scrub:+"$scrub"} </dev/null
    exit
    ;;
  explain | check | bench)
    # The program would take its own namespace there for yours. Of a file it takes all; what `check` asks about is in the
    # cluster all the same.
    case $command,$given_topology in explain,yes | bench,yes) given_namespace=yes ;; esac
    if [ -z "$given_namespace" ]; then
      mine=$(kube config view --minify -o 'jsonpath={..namespace}' 2>/dev/null) || mine=''
      set -- "$@" -n "${mine:-default}"
    fi
    ;;
esac

status=0
if [ -z "$input" ]; then
  kube -n "$namespace" exec deploy/heddle-cli -c cli -- kubectl-heddle "$@" </dev/null || status=$?
elif [ "$input" = - ]; then
  kube -n "$namespace" exec -i deploy/heddle-cli -c cli -- kubectl-heddle "$@" || status=$?
else
  kube -n "$namespace" exec -i deploy/heddle-cli -c cli -- kubectl-heddle "$@" <"$input" || status=$?
fi
if [ "$status" -ne 0 ] && ! kube -n "$namespace" get deploy heddle-cli >/dev/null 2>&1; then
  say "There is no Deployment heddle-cli in $namespace, or you may not see it: helm upgrade heddle ... --set cli.enabled=true"
fi
exit "$status"
