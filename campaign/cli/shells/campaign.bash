# Completion of `campaign` @VERSION@ for bash. In ~/.bashrc: eval "$(campaign completion bash)"

# The project's folder: CAMPAIGN_PROJECT, or the nearest one here or above that holds conf/config.yaml.
_campaign_project() {
  local folder=${CAMPAIGN_PROJECT:-$PWD}
  while [[ -n $folder && ! -f $folder/conf/config.yaml ]]; do folder=${folder%/*}; done
  printf '%s' "$folder"
}

# The names of a config group (or of the campaigns under runs/), one a line; any other words as they are. Packaged
# protocols fit any project; the other packaged names fit one without a workload of its own.
_campaign_names() {
  local folder path project packaged=
  case $1 in
    campaigns)
      for path in "$(_campaign_project)"/runs/*/ledger.jsonl; do
        [[ -e $path ]] && path=${path%/*} && printf '%s\n' "${path##*/}"
      done ;;
    hypothesis | workload | protocol)
      project=$(_campaign_project)
      [[ $1 == protocol || ( -n $project && ! -d $project/conf/workload ) ]] && packaged='@PACKAGED@'
      for folder in "$project/conf" ${packaged:+"$packaged"}; do
        for path in "$folder/$1"/*.yaml; do
          [[ -e $path ]] && path=${path##*/} && printf '%s\n' "${path%.yaml}"
        done
      done | sort -u ;;
    *) printf '%s\n' "$@" ;;
  esac
}

_campaign_options() {
  case $1 in
@OPTIONS@
  esac
}

_campaign_values() {
  case $1 in
@VALUES@
  esac
}

_campaign_words() {
  case $1 in
@WORDS@
  esac
}

# Candidates for a word. Bash replaces only what stands after the last `=`, so that is what a candidate holds; within
# `NAME,NAME` the names before the last comma stay.
_campaign_reply() {
  local word=$1 left=$2 typed list
  shift 2
  typed=${word#"$left"}
  list=
  [[ $typed == *,* ]] && list=${typed%,*},
  mapfile -t COMPREPLY < <(compgen -P "$list" -W "$(_campaign_names "$@")" -- "${typed#"$list"}")
  [[ $left == *=* && $COMP_WORDBREAKS != *=* ]] && COMPREPLY=("${COMPREPLY[@]/#/$left}")
}

_campaign() {
  local line=${COMP_LINE:0:COMP_POINT} word before verb kind
  local -a typed
  COMPREPLY=()
  read -ra typed <<<"$line"
  word=
  [[ $line == *[![:space:]] ]] && word=${typed[-1]} && unset 'typed[-1]'
  before=${typed[-1]-}
  verb=${typed[1]-}
  case $word in
    hypothesis=* | workload=* | protocol=*) _campaign_reply "$word" "${word%%=*}=" "${word%%=*}"; return ;;
    tracking=*) _campaign_reply "$word" tracking= mlflow none; return ;;
    campaign.name=*) _campaign_reply "$word" campaign.name= campaigns; return ;;
    --*=*) [[ $word == --campaign=* ]] && _campaign_reply "$word" --campaign= campaigns; return ;;
  esac
  if [[ -z $verb ]]; then
    if [[ $word == -* ]]; then
      mapfile -t COMPREPLY < <(compgen -W '--help --version -m' -- "$word")
      return
    fi
    mapfile -t COMPREPLY < <(compgen -W '@VERBS@ @KEYS@' -- "$word")
    _campaign_open
    return
  fi
  [[ $verb == -* || $verb == *=* ]] && verb=run
  kind=$(_campaign_values "$verb $before")
  case $kind in
    '') ;;
    files) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    none) return ;;
    *) read -ra typed <<<"$kind"; _campaign_reply "$word" '' "${typed[@]}"; return ;;
  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_campaign_options "$verb")" -- "$word")
    return
  fi
  kind=$(_campaign_words "$verb")
  case $kind in
    none | '') ;;
    files) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    overrides) mapfile -t COMPREPLY < <(compgen -W '@KEYS@' -- "$word"); _campaign_open ;;
    *) read -ra typed <<<"$kind"; _campaign_reply "$word" '' "${typed[@]}" ;;
  esac
}

# No space after `hypothesis=`.
_campaign_open() { [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null; return 0; }

complete -F _campaign campaign
