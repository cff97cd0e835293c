#!/usr/bin/env python3
"""Makes tests/golden/jinja/cases.json: small templates with what Jinja makes of them in transformers' environment, or
that it fails. Templates of which the result depends on addresses, and those that dtrun refuses on purpose, are listed as
such. Needs transformers and jinja2.

    tests/golden/make_jinja_fixture.py
"""
import json
import os
import re

from transformers.utils.chat_template_utils import _compile_jinja_template

HERE = os.path.dirname(os.path.abspath(__file__))

VARIABLES = {
    's': 'Hello Wörld, it\'s <b>"x"</b>\n line2\r\n\tend  ',
    'e': '',
    'u': 'ΑΣ ΣΑΣ. ßtraße ﬁx ŉ İI ǆ 𝒳 é\u2028z',
    'n': 5,
    'f': 2.5,
    'neg': -7,
    'z': 0,
    't': True,
    'no': None,
    'l': [3, 1, 2],
    'ls': ['b', 'A', 'c', 'a'],
    'd': {'b': 1, 'a': [1, 2, {'x': "y'"}], 'C': None, 'items': 9},
    'm': [{'role': 'user', 'content': 'hi'}, {'role': 'assistant', 'content': ' x ', 'n': 2}, {'role': 'user'}],
    'nest': {'a': {'b': [1, {'c': 'deep'}]}},
    'fl': [1e+16, 1e-05, 0.1, 1.0, 123456.789, 1e+22, -0.0, 1000000000000000.0, 1.2345678901234568e+17],
    'ctl': 'a\x00b\x01\x7f\xa0\u200b\\ \'"',
    'num': '12',
    'bad': 'x1.5e3',
}

TEMPLATES = []

def expressions(*all_of_them):
    TEMPLATES.extend("{{ " + one + " }}" for one in all_of_them)


expressions(
    's', 's|upper', 's|lower', 's|title', 's|capitalize', 'u|upper', 'u|lower', 'u|title', 'u|capitalize',
    'u.title()', 'u.swapcase()', 'u.capitalize()', 's.title()', 's.split()', 's.split(None,2)', 's.rsplit(None,2)',
    "s.split(' ')", "s.split(' ',1)", "s.rsplit(' ',2)", 's.splitlines()', 's.splitlines(true)', 'u.splitlines()',
    's.strip()', 's|trim', "s.lstrip('He')", "s.rstrip(' den')", "s.strip('\\n ')", "s.find('l')", "s.rfind('l')",
    "u.find('s')", "u.find('x')", "s.count('l')", "s.count('')", "s.replace('l','LL')", "s.replace('','-',3)",
    "e.replace('','-')", "'abc'.replace('','-')", "s|replace('l','1',2)", "s.startswith('He')",
    "s.endswith(('x',' '))", "s.startswith('l',2)", "s.index('W')", "s.partition('W')", "s.rpartition('x')",
    "s.partition('zzz')", "'-'.join(ls)", 'ls|join', "ls|join(', ')", "l|join('|')",
    "m|join(',',attribute='role')", "m|map(attribute='role')|join(',')", "m|map(attribute='n',default=7)|list",
    "ls|map('upper')|list", "ls|map('replace','a','q')|list", 'l|sort', 'ls|sort', 'ls|sort(case_sensitive=true)',
    'ls|sort(reverse=true)', "m|sort(attribute='role')|map(attribute='role')|list", 'd|dictsort', 'l|sum', 'l|min',
    'l|max', 'ls|max', '[]|max', 'l|first', 'l|last', '[]|first', 'l|reverse|list', 's|reverse', 'l|length',
    's|length', 'u|length', 'd|length', 'ls|unique|list', '(ls+ls)|unique|list', "m|groupby('role')|list",
    'l|batch(2)|list', "l|batch(2,'x')|list", 'l|slice(2)|list', "[1,2,3,4,5,6,7]|slice(3,'f')|list",
    'd|items|list', 'd.items()|list', 'd.keys()|list', 'd.values()|list', 'd|list', 's|list', 'd', 'm', 'nest',
    'fl', '[t,no,undefinedx is defined]', '(1,)', '()', '(1,2)', 'ctl', '[ctl]', '["it\'s"]', '[\'a"b\']',
    '[\'a"\\\'b\']', 'fl|tojson', 'd|tojson', 'd|tojson(indent=2)', 'm|tojson(indent=4)',
    'd|tojson(sort_keys=true)', "d|tojson(separators=(',',':'))", 'u|tojson', 'u|tojson(ensure_ascii=true)',
    'ctl|tojson', '[]|tojson(indent=2)', '{}|tojson', '{1:2,none:3,true:4,1.5:5}|tojson', 'd|tojson(indent=0)',
    "d|tojson(indent='--')", 's[0]', 's[-1]', 's[2:5]', 's[::-1]', 'u[::-1]', 'u[1:4]', 'u[-3:]', 'l[1:]',
    'l[::-1]', 'l[-2:]', 'l[5:]', 'l[:-1]', 'l[10]', 's[100]', 's[5:2]', 'l[::2]', 'l[-1:0:-1]', 's[::3]',
    'u[::-2]', 'n+1', 'n-1', 'n*2', 'n/2', 'n//2', 'neg//2', 'neg%3', 'n%3', 'n**2', '2**-1', 'f*2', 'f//1',
    '-f//1', 'f%0.7', '-f%0.7', '7.0//2', '1/3', 'n~f', "n~'x'~no~t", "'a'*3", "3*'a'", '[1]*3', 'l+[9]',
    "'%s and %d %5.2f %r %%'%(s,n,f,ls)", "'%05d|%-5s|%x'%(n,e,255)", "'{} {1}'", "'{} {}'.format(n,s)",
    "'{0}{a}'.format(n,a=2)", '-n', '+n', '--n', 'not n', 'n==5', 'n==5.0', 't==1', 'l==[3,1,2]', '(1,2)==(1,2)',
    '(1,2)==[1,2]', 'd==d', 'no==none', '1<2<3', '1<2>3', "'a'<'b'", '[1,2]<[1,3]', 'n>3 and n<10', 'n in l',
    "'ell' in s", "'role' in m[0]", "'zz' not in s", 'n not in l', "e or 'def'", "n and 'x'", 'no or e',
    "'x' if n else 'y'", "'x' if z else 'y'", "'x' if z", "('x' if z)|default('q')", 'undefinedx',
    "undefinedx|default('dd')", "e|default('dd')", "e|default('dd',true)", "no|default('q')", "no|d('q',true)",
    'm[2].content', "m[2].content|default('none')", "m[2]['content'] is defined", 'm[2].content is none',
    'd.items is defined', "d['items']", "d.get('b')", "d.get('zz')", "d.get('zz',3)", 'd.C is none',
    'nest.a.b[1].c', "nest['a']['b'][0]", 'nest.a.b.0', 'm[0].role', 'd.a[2].x', 'nest.zz is undefined',
    'nest.zz is iterable', 'undefinedx is sequence', 'undefinedx is iterable', 'undefinedx is mapping',
    'n is number', 't is number', 't is integer', 'f is float', 's is string', 'l is sequence', 'l is iterable',
    'd is mapping', 'd is iterable', 'd is sequence', '(1,2) is sequence', 'range(3) is sequence',
    "l|map('string') is iterable", 'n is odd', 'n is even', 'n is divisibleby 5', 'n is divisibleby(2)',
    'n is in l', 'n is eq 5', 'n is equalto(5)', 's is lower', "'abc' is lower", "'ABC' is upper", 't is true',
    't is false', 't is boolean', 'no is none', 'no is not none', 'l is sameas l', 'raise_exception is callable',
    'num|int', 'bad|int', "'1.7'|int", "'x'|int(9)", "'0x1f'|int(0,16)", "'ff'|int(0,16)", 'f|int', 'no|int',
    '[]|int', 'num|float', 'bad|float', "' 1_0 '|int", 't|int', "'1e3'|float", "'inf'|float", '3.7|round',
    '2.5|round', '3.14159|round(2)', "3.1|round(0,'ceil')", "3.9|round(1,'floor')", '5|round', '-3|abs',
    's|string|length', "n|string ~ 'x'", 'f|string', 's|e', 's|escape', "'a&b'|safe", 's|indent', 's|indent(2)',
    's|indent(2,true)', "s|indent('>>',first=true,blank=true)", "'a\\n\\nb\\n'|indent", "''|indent",
    's|truncate(9)', 's|truncate(9,true)', "s|truncate(9,false,'!',0)", 's|wordcount', 's|center(80)',
    "'x'|center(4)", "'xx'.center(5)", "'xx'.ljust(5)~'|'", "'xx'.rjust(5,'*')", "'-5'.zfill(4)",
    "'a b/ü'|urlencode", "'%s'|format(n)", "m|selectattr('role','equalto','user')|list",
    "m|selectattr('content')|list", "m|selectattr('content','defined')|list|length",
    "m|rejectattr('role','eq','user')|list", "l|select('odd')|list", "l|reject('gt',1)|list", 'l|select|list',
    "[0,1,'']|select|list", "m|selectattr('role','in',['user'])|map(attribute='content')|list", 'range(5)|list',
    'range(2,8,3)|list', 'range(5,0,-2)|list', 'dict(a=1,b=2)', "dict([('x',1)])", 'dict(d,q=3)',
    'namespace(a=1).a', "'abc'.upper().lower().title()", "'a,b'.split(',')[1]", 's.isalpha()', "'abc'.isalpha()",
    "'12'.isdigit()", "' '.isspace()", "'ab1'.isalnum()", "'Ab'.islower()", "'AB'.isupper()",
    "'x'.removeprefix('x')", "'test.py'.removesuffix('.py')", "'\\n\\t\\x41\\u00e9\\\\\\''", "'a' 'b'", '1_000',
    '0x1F', '1e3', '1.5e-3', 'true', 'True', 'none', 'None', 'false', "{'a':1,'b':[1,2]}", "{'a':1}.a",
    '[1,2,][0]', '(n)', '(n,)', 'l.index(1)', 'l.count(1)', '1 if true else 2 if false else 3', 'not not n',
    'n is defined and n', "'a' ~ 1 + 2", '-2**2', '2**3**2', '10 - 2 - 3', '2 * 3 % 4', '1 + 2 ~ 3',
    'n is not in l', 'not n in l', 's.upper', 'l.append(1)', 's.__class__', "d.pop('b')", 'n.foo.bar',
    'undefinedx.y', 'undefinedx + 1', "no + 'x'", "'x' + 1", 'l[0].x', 's.foo', 'd.zz.yy',
    "raise_exception('boom')", '1/0', 'l|foo', 'n|length', 'n[0]', 'no[0]', 'no.x', '[x for x in l]', 's is foo',
    'loop', "strftime_now('%Y')|length", "(l|map('string'))|length", "l|map('string')|first", '(l|select)[0]',
    'l|reverse|first', '(l|reverse) is sequence', "l|join(',')|length", "''.join(['a','b'])", "','.join(l)",
    'm[0].items()|list', 'm|length > 2', 'm[1:]|length', "(m[-1].role == 'user') and m[-1].content",
    's|trim|length', "s.strip().split('\\n')|map('trim')|list", "[[1,2],[3]]|map('sum')|list",
    "[{'a':{'b':3}}]|map(attribute='a.b')|list", "'x'|attr('upper')", "d|attr('b')|default('zz')", '1 == true',
    "'1' == 1", '[1] in [[1]]', 'none in [none]', '3 in (1,2,3)', "'b' in d", 'l|list|sort|first',
    "{'x':1}|tojson|safe", '1.0', '1.50|string', '100000000000000000000.0', '3|tojson', "'</s>'|tojson",
    'none|tojson', 'true|tojson', '(1,2)|tojson', 'm|last', "m|map(attribute='content')|list",
    "m|selectattr('role','==','user')|list|length", "'abc'|list|join('-')", "s|upper|replace('O','0')|trim",
    "'ab\\ncd'.splitlines()[1]", "'a-b_c'.replace('-','_').split('_')", 'l|tojson(indent=none)',
    "namespace(x=1)['x']", "[1,2]|first|string + 'a'", '1 if undefinedx else 2', 'undefinedx == undefinedy',
    'undefinedx is none', 'undefinedx == none', 'not undefinedx', "undefinedx or 'z'", '(undefinedx,)',
    '[undefinedx]', 'undefinedx|length', 'undefinedx|list', 'undefinedx|join', 'undefinedx|tojson',
    "'a' in undefinedx", "undefinedx in ['a']", "'x%sy' % undefinedx", "'b' > 1", 'l|sum(start=10)',
    "m|sum(attribute='zz')", "''|first", 'l|d([])', 'd|d({})|length',
)
TEMPLATES += [
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a','b') }}{{ loop.changed(x>1) }},{% endfor %}",
    '{% for x in [] %}a{% else %}empty{% endfor %}',
    '{% for x in l if x>1 %}{{ x }}{{ loop.length }}{% else %}none{% endfor %}',
    '{% for k,v in d.items() %}{{k}}={{v}};{% endfor %}', '{% for k in d %}{{k}}{% endfor %}',
    '{% for c in u %}[{{c}}]{% endfor %}', '{% for (a,b) in [(1,2),(3,4)] %}{{a}}{{b}}{% endfor %}',
    '{% for x in undefinedx %}a{% else %}b{% endfor %}', '{% for x in n %}a{% endfor %}',
    '{% set x = 1 %}{% for y in l %}{% set x = x + y %}{{x}}{% endfor %}{{x}}',
    '{% set ns = namespace(x=0) %}{% for y in l %}{% set ns.x = ns.x + y %}{% endfor %}{{ns.x}}',
    '{% set a, b = 1, 2 %}{{a}}{{b}}', '{% set a = 1, 2 %}{{a}}', '{% if z %}a{% elif n %}b{% else %}c{% endif %}',
    '{% if z %}a{% elif no %}b{% else %}c{% endif %}', '{% if t %}{% set q = 3 %}{% endif %}{{q}}',
    '{% set x %}abc{{n}}{% endset %}[{{x}}]', '{% set x | upper %}abc{{n}}{% endset %}[{{x}}]',
    '{% macro m(a,b=2,c=a) %}{{a}}-{{b}}-{{c}}{{varargs}}{{kwargs}}{% endmacro %}{{m(1)}}|{{m(1,c=4)}}|{{m(1,2,3,4,z=5)}}|{{m()}}',
    '{% macro m(a) %}{{a}}{% endmacro %}{{m(1,2)}}', '{% macro m(a) %}{{a}}{% endmacro %}{{m(b=2)}}',
    '{% macro m() %}<{{caller()}}>{% endmacro %}{% call m() %}in{{n}}{% endcall %}',
    '{% macro m() %}{% for i in l %}{{caller(i)}}{% endfor %}{% endmacro %}{% call(x) m() %}[{{x}}]{% endcall %}',
    '{% macro f(k) %}{{ k }}{% if k>0 %}{{ f(k-1) }}{% endif %}{% endmacro %}{{f(3)}}',
    '{% filter upper %}abc{{s}}{% endfilter %}', '{% with a=1, b=2 %}{{a+b}}{% endwith %}{{a}}',
    '{% raw %}{{x}}{% if %}{% endraw %}',
    '{% for x in l %}{% if x==1 %}{% continue %}{% endif %}{{x}}{% if x==2 %}{% break %}{% endif %}{% endfor %}',
    '{% for x in l recursive %}{{x}}{% if loop.depth<2 %}({{ loop([7,8]) }}){% endif %}{% endfor %}',
    '{# c #}a{#- c -#} b', '  {% if t %}\n  x\n  {% endif %}\n y', 'a  {%- if t -%}  b  {%- endif -%}  c',
    '  {%+ if t %}x{% endif +%}\n y', "{{ 'a' }}\nb\n", '\n\n{{- n -}}\n\n x', '  {# c #}\n  {{n}}  \n',
    '{% if t %}\n\n a{% endif %}\n\n', '{% generation %}x{{n}}{% endgeneration %}', "a\r\nb\rc\n{{'x'}}\r\n",
    '{%- for x in l -%}\n {{ x }}\n{%- endfor %}\n', '{% raw -%}  \n x {%- endraw %}  ',
    '  {% raw %}\n y\n  {% endraw %}\nz', '{% print n, s %}', '{% block x %}a{% endblock %}', "{% include 'a' %}",
    '{% do x %}', '{% if %}', '{{ }}', '{{ 1 +', '{% for %}', '{% endfor %}', "{{ 'abc }}", '{% if t %}x',
    '{{ x | nofilter }}', '{% if z %}{{ 1|nofilter }}{% endif %}ok', '{% set s.x = 1 %}', '{% set none = 1 %}',
    '{{ a b }}', "{{ {'a':1}}}", "{{ {'a':{'b':1}} }}", '{{ [1,2}}', '{% macro a(x, y=1, z) %}{% endmacro %}',
    '{{ f(a=1, 2) }}', '{% break %}', '{{ 1.2.3 }}', '{{ l.0 }}', "{{ '\\N{DASH}' }}", '{{ x is not }}',
    '{% for a in b in c %}{% endfor %}', '{{ 5 is divisibleby 5 and true }}',
    "{{ 'a' if 'b' in 'abc' else 'c' ~ 'd' }}", '{{ (1 if t else 2) + 3 }}', "{{- '\n' -}} x", '{{ "a\nb" }}',
    '{% if l is string %}1{% elif l is iterable and l is not mapping %}2{% endif %}',
    "{% set x = 'a' %}{% macro q() %}{{x}}{% endmacro %}{% set x = 'b' %}{{q()}}",
    '{% for i in range(3) %}{% set z = i %}{% endfor %}{{z}}',
    '{% for i in l %}{% for j in l %}{{loop.index}}{{i}}{% endfor %}{{loop.index}}{% endfor %}',
    '{{ loop is defined }}', '{% for m in m %}{{ m.role }}{% endfor %}{{ m|length }}',
    '{% set m = m[1:] %}{{ m|length }}',
    "{% for message in m %}{{ '<|' + message['role'] + '|>' + (message['content']|trim if message['content'] else '') }}{% endfor %}",
    '{%set x=1%}{{x}}', '{%if t%}a{%endif%}b', '{{n}}{{-n}}', '{{n -}}  {{- n}}',
    '{% if t -%}\n a\n{%- endif %}\nb', '{%- set ns = namespace(a=[]) -%}{%- set ns.a = ns.a + [1] -%}{{ns.a}}',
    "{% set x = namespace() %}{% set x.y = {'a': 1} %}{{ x.y.a }}{{ x.z is defined }}", '{{ namespace(_a=1) }}',
    '{% for x in l|sort %}{{x}}{% endfor %}', "{% for x in 'a','b' %}{{x}}{% endfor %}",
    "{% for x in (l|select('odd')) %}{{x}}{{loop.last}}{% endfor %}",
    "{% set g = l|select('odd') %}{{ g|list }}{{ g|list }}{% if g %}y{% endif %}", '{{ caller }}', '{{ self }}',
    "{% set x = joiner(',') %}", "{{ cycler('a','b') }}", '{{ lipsum }}', "{{ '%.3f' % 2.0005 }}",
    "{{ '%e' % 12345.678 }}", "{{ '%g' % 0.0001 }}", "{{ '%s' % l }}", "{{ '%s' % (l,) }}", "{{ '%d' % 3.9 }}",
    "{{ '%i%%' % 50 }}", "{{ '%c' % 65 }}", "{{ '%10.3s|' % 'abcdef' }}", "{{ '%+d % d' % (5,6) }}",
]
TEMPLATES += ["{{ l.__class__ }}"]

# Jinja renders these; dtrun refuses them by name.
REFUSED = ["{{ s.upper }}", "{{ 'x'|attr('upper') }}", "{% block x %}a{% endblock %}", "{{ self }}",
           "{% set x = joiner(',') %}", "{{ cycler('a','b') }}", "{{ lipsum }}", "{{ '%c' % 65 }}", "{{ s.encode() }}",
           "{{ s|pprint }}"]


def case_of(template):
    try:
        text = _compile_jinja_template(template).render(**VARIABLES)
    except Exception as why:  # whatever Jinja or Python raises
        return {"template": template, "fails": type(why).__name__}
    if template in REFUSED or re.search(r" at 0x[0-9a-f]+", text):
        return {"template": template, "fails": "refused"}
    return {"template": template, "text": text}


def main():
    os.makedirs(os.path.join(HERE, "jinja"), exist_ok=True)
    cases = [case_of(template) for template in dict.fromkeys(TEMPLATES + REFUSED)]
    with open(os.path.join(HERE, "jinja/cases.json"), "w", encoding="utf-8") as file:
        file.write('{"variables": ' + json.dumps(VARIABLES) + ',\n "cases": [\n')
        file.write(",\n".join("  " + json.dumps(case) for case in cases) + "\n]}\n")
    print(f"{len(cases)} templates, of which {sum('fails' in case for case in cases)} fail")


if __name__ == "__main__":
    main()
