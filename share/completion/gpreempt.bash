
# Where the cursor is: $verb, the option whose value it is ($option), where the arguments began ($first).
_gpreempt_place()
{
	local i word
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ -z $verb ]]; then
			verb=$word options=
			_gpreempt_data "$verb"
		elif [[ -n $commands && $first -gt 0 ]]; then
			break
		elif [[ -n $option ]]; then
			[[ $word == '=' ]] || option=
		elif [[ " $values " == *" $word "* ]]; then
			option=$word
		elif [[ $word == -- ]]; then
			first=$((i + 1))
		elif [[ $word != -* && $word != '=' && $first -eq 0 ]]; then
			first=$i
		fi
	done
}

_gpreempt()
{
	local cur=${COMP_WORDS[COMP_CWORD]} verb= option= first=0 words= options= values= files= commands= again=

	COMPREPLY=()
	_gpreempt_data ''
	_gpreempt_place
	if [[ -n $option ]]; then
		_gpreempt_data "$verb $option"
		[[ $cur != '=' ]] || cur=
	elif [[ -n $commands && $first -gt 0 && $first -lt $COMP_CWORD ]]; then
		declare -F _command_offset >/dev/null && _command_offset "$first" && return
		files=yes commands=
	elif [[ $cur == -* ]]; then
		words=$options files= commands=
	elif ((first)) && [[ -z $again || $first -lt $((COMP_CWORD - 1)) ]]; then
		words=
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" ${commands:+-c} -- "$cur")
	[[ -z $files ]] || compopt -o default 2>/dev/null
}

# A verb under a name of its own.
_gpreempt_find()
{
	COMP_WORDS=(gpreempt find "${COMP_WORDS[@]:1}")
	COMP_CWORD=$((COMP_CWORD + 1))
	_gpreempt
}

_gpreemptd()
{
	local cur=${COMP_WORDS[COMP_CWORD]}

	COMPREPLY=()
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" --help 2>/dev/null | grep -oE -- '--[a-z-]+')" -- "$cur")
	else
		compopt -o default 2>/dev/null
	fi
}

complete -F _gpreempt gpreempt
complete -F _gpreempt_find queue_finder
complete -F _gpreemptd gpreemptd
