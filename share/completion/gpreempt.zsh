
_gpreempt_names()
{
	compadd -- "$@"
	_files
}

_gpreempt()
{
	local context state state_descr line
	local -a specs verbs
	typeset -A opt_args

	case $service in
	gpreemptd)
		_gnu_generic
		return
		;;
	queue_finder)
		_gpreempt_data find
		_arguments $specs
		return
		;;
	esac
	_gpreempt_data ''
	_arguments -C '1: :->verb' '*:: :->rest'
	case $state in
	verb) _describe verb verbs ;;
	rest)
		_gpreempt_data "$words[1]"
		_arguments $specs
		;;
	esac
}

# Loaded by name when it is first needed, or by source.
if [[ $funcstack[1] == _gpreempt ]]; then
	_gpreempt "$@"
else
	compdef _gpreempt gpreempt gpreemptd queue_finder
fi
