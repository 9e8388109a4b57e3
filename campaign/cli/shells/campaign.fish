# Completion of `campaign` @VERSION@ for fish: campaign completion fish > ~/.config/fish/completions/campaign.fish

# The project's folder: CAMPAIGN_PROJECT, or the nearest one here or above that holds conf/config.yaml.
function __campaign_project
    set -l folder $PWD
    set -q CAMPAIGN_PROJECT; and set folder $CAMPAIGN_PROJECT
    while test -n "$folder" -a ! -f "$folder/conf/config.yaml"
        set folder (string replace -r '/[^/]*$' '' -- $folder)
    end
    echo $folder
end

# The names of a config group (or of the campaigns under runs/), one a line; any other words as they are. Packaged
# protocols fit any project; the other packaged names fit one without a workload of its own.
function __campaign_names
    set -l folder (__campaign_project)
    switch $argv[1]
        case campaigns
            for path in $folder/runs/*/ledger.jsonl
                string replace -r '.*/([^/]+)/ledger\.jsonl$' '$1' -- $path
            end
        case hypothesis workload protocol
            set -l packaged
            if test "$argv[1]" = protocol -o \( -n "$folder" -a ! -d "$folder/conf/workload" \)
                set packaged '@PACKAGED@'/$argv[1]/*.yaml
            end
            for path in $folder/conf/$argv[1]/*.yaml $packaged
                string replace -r '.*/(.+)\.yaml$' '$1' -- $path
            end | sort -u
        case '*'
            printf '%s\n' $argv
    end
end

# Candidates for the word under the cursor: whole words, because that is what fish compares.
function __campaign_words
    set -l word (commandline -ct)
    if test "$argv[1]" = overrides
        set -l group (string match -r '^(hypothesis|workload|protocol)=' -- $word)[2]
        if test -n "$group"
            set -l before (string match -r '^.*[=,]' -- $word)
            printf '%s\n' $before(__campaign_names $group)
        else if string match -q 'tracking=*' -- $word
            printf '%s\n' tracking=mlflow tracking=none
        else if string match -q 'campaign.name=*' -- $word
            printf '%s\n' campaign.name=(__campaign_names campaigns)
        else
            printf '%s\n' (string split ' ' -- '@KEYS@')
        end
        return
    end
    set -l before (string match -r '^.*,' -- $word)
    printf '%s\n' "$before"(__campaign_names $argv)
end

function __campaign_first
    test (count (commandline -opc)) -eq 1
end

# Whether the line's verb is this one; overrides without a verb are a run.
function __campaign_verb
    set -l typed (commandline -opc)
    test (count $typed) -ge 2; or return 1
    set -l verb $typed[2]
    string match -qr '^-|=' -- $verb; and set verb run
    test "$verb" = $argv[1]
end

complete -c campaign -f
@SUMMARIES@
complete -c campaign -n __campaign_first -l help -d 'the whole loop on one screen'
complete -c campaign -n __campaign_first -l version
complete -c campaign -n __campaign_first -s m -d 'several runs, one after another'
complete -c campaign -n __campaign_first -a '(__campaign_words overrides)'
@OPTIONS@
@WORDS@
