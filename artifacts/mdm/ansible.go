package mdm

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"halos.dev/halo/artifacts"
)

// yamlString is s as a YAML scalar in double quotes.
func yamlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"', r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r >= utf8.RuneSelf && r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// writeAnsible makes a role. Every text that comes from the release is marked !unsafe, so that Ansible never takes braces in it for a template.
func writeAnsible(e *export) error {
	const role = "roles/halo_policy/"
	group := strings.TrimPrefix(owners[e.Target.OS], "root:")
	items := e.of(Role)
	var vars strings.Builder
	fmt.Fprintf(&vars, "---\n# halo policy %s\n# %s\nhalo_policy_directories:\n", printable(e.Target.ID), e.release())
	for _, d := range ownDirs(items) {
		fmt.Fprintf(&vars, "  - !unsafe %s\n", yamlString(d))
	}
	vars.WriteString("halo_policy_files:\n")
	for _, it := range items {
		src := artifacts.RootPath(it.Dest)
		e.Files[role+"files/"+src] = it.data
		it.Source = role + "files/" + src
		fmt.Fprintf(&vars, "  - src: !unsafe %s\n    dest: !unsafe %s\n    mode: \"%s\"\n    sha256: \"%s\"\n", yamlString(src), yamlString(it.Dest), it.Mode, it.SHA256)
	}
	fmt.Fprintf(&vars, "halo_policy_group: %s\n", group)
	e.Files[role+"vars/main.yml"] = []byte(vars.String())
	for name, text := range map[string]string{"meta/main.yml": ansibleMeta, "tasks/main.yml": ansibleTasks, "tasks/remove.yml": ansibleRemove, "defaults/main.yml": ansibleDefaults} {
		e.Files[role+name] = []byte(text)
	}
	e.Files["site.yml"] = []byte(ansibleSite)
	return nil
}

const ansibleMeta = `---
galaxy_info:
  author: halo
  description: Managed settings of AI agents
  license: none
  min_ansible_version: "2.14"
dependencies: []
`

const ansibleDefaults = `---
# Set to true to remove what the role put on a host.
halo_policy_remove: false
`

const ansibleSite = `---
- name: Agent policy
  hosts: all
  become: true
  roles:
    - halo_policy
`

// The record has the form that the scripts of other exports write, so that a change of channel leaves nothing behind.
const ansibleTasks = `---
- name: Read what an older release left
  ansible.builtin.command: cat /var/lib/halo/mdm.list
  register: halo_policy_record
  changed_when: false
  failed_when: false
  check_mode: false

- name: Remove the policy
  ansible.builtin.include_tasks: remove.yml
  when: halo_policy_remove | bool

- name: Put the policy in place
  when: not (halo_policy_remove | bool)
  block:
    - name: Make the directories that only these files use
      ansible.builtin.file:
        path: "{{ item }}"
        state: directory
        owner: root
        group: "{{ halo_policy_group }}"
        mode: "0755"
        follow: false
      loop: "{{ halo_policy_directories }}"

    # backup keeps a file that differs, under a name that no harness reads.
    - name: Copy the managed files
      ansible.builtin.copy:
        src: "{{ item.src }}"
        dest: "{{ item.dest }}"
        owner: root
        group: "{{ halo_policy_group }}"
        mode: "{{ item.mode }}"
        backup: "{{ item.dest not in halo_policy_known }}"
      loop: "{{ halo_policy_files }}"
      loop_control:
        label: "{{ item.dest }}"
      vars:
        halo_policy_known: "{{ halo_policy_record.stdout_lines | default([]) | map('regex_replace', '^[0-9a-f]{64}  ', '') | list }}"

    - name: Remove what an older release left
      ansible.builtin.file:
        path: "{{ item }}"
        state: absent
      loop: "{{ halo_policy_record.stdout_lines | default([]) | map('regex_replace', '^[0-9a-f]{64}  ', '') | select('match', '/') | difference(halo_policy_files | map(attribute='dest')) }}"

    - name: Make the directory of the record
      ansible.builtin.file:
        path: /var/lib/halo
        state: directory
        owner: root
        group: "{{ halo_policy_group }}"
        mode: "0755"

    - name: Write the record
      ansible.builtin.copy:
        content: "{% for f in halo_policy_files %}{{ f.sha256 }}  {{ f.dest }}\n{% endfor %}"
        dest: /var/lib/halo/mdm.list
        owner: root
        group: "{{ halo_policy_group }}"
        mode: "0644"
`

const ansibleRemove = `---
- name: Remove the managed files
  ansible.builtin.file:
    path: "{{ item }}"
    state: absent
  loop: "{{ halo_policy_record.stdout_lines | default([]) | map('regex_replace', '^[0-9a-f]{64}  ', '') | select('match', '/') | list }}"

- name: Remove the record
  ansible.builtin.file:
    path: /var/lib/halo/mdm.list
    state: absent
`
