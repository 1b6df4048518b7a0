
# The verb that has been typed is this one; without an argument: none has been.
function __gpreempt_verb
    set -l words (commandline -opc)
    test "$words[2]" = "$argv[1]"
end

complete -c queue_finder -w 'gpreempt find'
complete -c gpreemptd -a '(string match -q -- "-*" (commandline -ct); and gpreemptd --help | string match -ar -- "--[a-z-]+")'
