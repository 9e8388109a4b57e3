#compdef campaign
# Completion of `campaign` @VERSION@ for zsh. In ~/.zshrc, after compinit: eval "$(campaign completion zsh)"

# The project's folder: CAMPAIGN_PROJECT, or the nearest one here or above that holds conf/config.yaml.
_campaign_project() {
  local folder=${CAMPAIGN_PROJECT:-$PWD}
  while [[ -n $folder && ! -f $folder/conf/config.yaml ]]; do folder=${folder%/*}; done
  print -r -- "$folder"
}

# The names of a config group (or of the campaigns under runs/), one a line; any other words as they are. Packaged
# protocols fit any project; the other packaged names fit one without a workload of its own.
_campaign_names() {
  local folder=$(_campaign_project)
  case $1 in
    campaigns) print -rl -- $folder/runs/*/ledger.jsonl(N:h:t) ;;
    hypothesis|workload|protocol)
      print -rl -- $folder/conf/$1/*.yaml(N:t:r)
      [[ $1 == protocol || ( -n $folder && ! -d $folder/conf/workload ) ]] && print -rl -- '@PACKAGED@'/$1/*.yaml(N:t:r) ;;
    *) print -rl -- "$@" ;;
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

_campaign_add() { local -aU found=(${(f)"$(_campaign_names "$@")"}); compadd -- $found }

_campaign_keys() { local -a keys=(${=:-@KEYS@}); compadd -S '' -- $keys }

_campaign() {
  local verb=${words[2]} kind
  case $PREFIX in
    (hypothesis|workload|protocol)=*) kind=${PREFIX%%=*}; compset -P '*[=,]'; _campaign_add $kind; return ;;
    tracking=*) compset -P '*='; _campaign_add mlflow none; return ;;
    (campaign.name|--campaign)=*) compset -P '*='; _campaign_add campaigns; return ;;
  esac
  if (( CURRENT == 2 )); then
    if [[ $PREFIX == -* ]]; then
      compadd -- --help --version -m
      return
    fi
    local -a verbs=(
@SUMMARIES@
    )
    _describe 'verb' verbs
    _campaign_keys
    return
  fi
  [[ $verb == -* || $verb == *=* ]] && verb=run
  kind=$(_campaign_values "$verb ${words[CURRENT-1]}")
  case $kind in
    '') ;;
    files) _files; return ;;
    none) return ;;
    *) compset -P '*,'; _campaign_add ${=kind}; return ;;
  esac
  if [[ $PREFIX == -* ]]; then
    compadd -- ${=$(_campaign_options $verb)}
    return
  fi
  kind=$(_campaign_words $verb)
  case $kind in
    none|'') ;;
    files) _files ;;
    overrides) _campaign_keys ;;
    *) _campaign_add ${=kind} ;;
  esac
}

# Sourced, it registers itself; autoloaded from a file of $fpath, it completes.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _campaign "$@"; else compdef _campaign campaign; fi
